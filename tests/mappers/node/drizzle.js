// Drizzle: drizzle-kit's generate and its migrator, pull and push over what it made, rows.
const { execFileSync } = require("child_process");
const fs = require("fs");
const path = require("path");
const os = require("os");
const { Pool } = require("pg");
const { drizzle } = require("drizzle-orm/node-postgres");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const { eq, sql, desc, inArray, arrayContains, count, sum } = require("drizzle-orm");
const { show, url } = require("./shown");

const home = process.env.MAPPERS_NODE, work = fs.mkdtempSync(path.join(home, "drizzle-"));
process.on("exit", () => fs.rmSync(work, { recursive: true, force: true }));
const kit = (...words) => {
  try { return execFileSync(process.execPath, [path.join(home, "node_modules/drizzle-kit/bin.cjs"), ...words], { cwd: work, env: { ...process.env, NO_COLOR: "1" }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }); }
  catch (e) { throw new Error(`drizzle-kit ${words.join(" ")}: ${e.stdout}${e.stderr}`); }
};
const file = (name, text) => fs.writeFileSync(path.join(work, name), text);
const schema = (more) => `
const { pgTable, pgEnum, pgView, serial, text, varchar, integer, bigint, numeric, boolean, jsonb, uuid, timestamp, date, index, uniqueIndex, unique, check, primaryKey, pgSequence } = require("drizzle-orm/pg-core");
const { sql, relations } = require("drizzle-orm");
const level = pgEnum("level", ["low", "high"]);
const authors = pgTable("authors", { id: serial("id").primaryKey(), name: varchar("name", { length: 80 }).notNull().unique(), level: level("level").default("low"),
  settings: jsonb("settings").default({}), tags: text("tags").array().notNull().default([]), token: uuid("token").defaultRandom(), made: timestamp("made", { withTimezone: true, precision: 3 }).defaultNow(),
  born: date("born"), rating: numeric("rating", { precision: 6, scale: 2 }).default("1.50"), ${more} shout: text("shout").generatedAlwaysAs(sql\`upper(name)\`) },
  (t) => [check("rated", sql\`\${t.rating} >= 0\`), index("by_level").on(t.level.asc(), t.name.desc()).where(sql\`\${t.rating} > 1\`), uniqueIndex("by_lower").on(sql\`lower(\${t.name})\`)]);
const books = pgTable("books", { id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity({ startWith: 100 }), title: text("title").notNull(), pages: integer("pages").default(0), ok: boolean("ok").default(true),
  author: integer("author_id").notNull().references(() => authors.id, { onDelete: "cascade", onUpdate: "no action" }) }, (t) => [unique("once").on(t.title, t.author)]);
const marks = pgTable("marks", { author: integer("author_id").notNull().references(() => authors.id), book: bigint("book_id", { mode: "number" }).notNull().references(() => books.id) }, (t) => [primaryKey({ columns: [t.author, t.book] })]);
const dear = pgView("dear").as((q) => q.select({ title: books.title }).from(books).where(sql\`\${books.pages} > 100\`));
const numbers = pgSequence("numbers", { startWith: 10, increment: 5 });
const authorRelations = relations(authors, ({ many }) => ({ books: many(books) }));
const bookRelations = relations(books, ({ one }) => ({ writer: one(authors, { fields: [books.author], references: [authors.id] }) }));
module.exports = { level, authors, books, marks, dear, numbers, authorRelations, bookRelations };
`;

(async () => {
  const pool = new Pool({ connectionString: url });
  file("drizzle.config.js", `module.exports = { dialect: "postgresql", schema: "./schema.js", out: "./made", dbCredentials: { url: ${JSON.stringify(url)} } };`);
  file("pull.config.js", `module.exports = { dialect: "postgresql", out: "./pulled", dbCredentials: { url: ${JSON.stringify(url)} } };`);
  file("schema.js", schema(""));
  kit("generate", "--config=drizzle.config.js", "--name=first");
  const plain = drizzle(pool);
  await migrate(plain, { migrationsFolder: path.join(work, "made") });
  file("schema.js", schema('extra: integer("extra").default(5),'));
  kit("generate", "--config=drizzle.config.js", "--name=second");
  await migrate(plain, { migrationsFolder: path.join(work, "made") });
  await migrate(plain, { migrationsFolder: path.join(work, "made") });
  show("migrations", (await pool.query("select count(*) from drizzle.__drizzle_migrations")).rows);
  kit("pull", "--config=pull.config.js");
  // Tables come in no order, and the operator class is that of any column: its query has DISTINCT ON without an order.
  show("pulled", fs.readFileSync(path.join(work, "pulled/schema.ts"), "utf8").split("\n").filter((l) => !/^import|^}\).as\(sql/.test(l)).map((l) => l.replace(/\.op\([^)]*\)/g, "")).sort());
  show("push", kit("push", "--config=drizzle.config.js", "--force").split("\n").filter((l) => /applied|No changes|ALTER|DROP|CREATE/.test(l)));
  file("schema.js", schema('extra: bigint("extra", { mode: "number" }), other: text("other"),'));
  show("push more", kit("push", "--config=drizzle.config.js", "--force", "--verbose").split("\n").filter((l) => /applied|ALTER|DROP|CREATE/.test(l)));

  const t = require(path.join(work, "schema.js"));
  const db = drizzle(pool, { schema: t });
  const [ann] = await db.insert(t.authors).values({ name: "Ann", tags: ["a", "b"], settings: { x: 1 }, born: "1990-02-03" }).returning();
  show("ann", { ...ann, token: 0, made: 0 });
  await db.insert(t.authors).values([{ name: "Ann", level: "high" }, { name: "Bob" }]).onConflictDoUpdate({ target: t.authors.name, set: { level: sql`excluded.level` } });
  await db.insert(t.authors).values({ name: "Bob" }).onConflictDoNothing();
  await db.insert(t.books).values([{ title: "One", pages: 200, author: ann.id }, { title: "Two", pages: 5, author: ann.id }]);
  show("relations", await db.query.authors.findMany({ columns: { name: true, level: true }, with: { books: { columns: { title: true, id: true }, orderBy: (b) => desc(b.pages), with: { writer: { columns: { name: true } } } } }, orderBy: (a) => a.id }));
  show("view", await db.select().from(t.dear));
  show("grouped", await db.select({ name: t.authors.name, n: count(t.books.id), pages: sum(t.books.pages) }).from(t.authors).leftJoin(t.books, eq(t.books.author, t.authors.id)).groupBy(t.authors.name).orderBy(t.authors.name));
  show("arrays", await db.select({ name: t.authors.name }).from(t.authors).where(arrayContains(t.authors.tags, ["a"])));
  const w = db.$with("w").as(db.select({ id: t.books.id, p: sql`${t.books.pages} * 2`.as("p") }).from(t.books));
  show("with", await db.with(w).select().from(w).orderBy(desc(w.p)));
  const prepared = db.select({ title: t.books.title }).from(t.books).where(eq(t.books.pages, sql.placeholder("p"))).prepare("by_pages");
  show("prepared", await prepared.execute({ p: 5 }), await prepared.execute({ p: 200 }));
  await db.transaction(async (tx) => {
    await tx.update(t.books).set({ pages: sql`${t.books.pages} + 1` }).where(inArray(t.books.title, ["One"]));
    await tx.transaction(async (inner) => { await inner.delete(t.books); inner.rollback(); }).catch((e) => show("inner", e.message));
    show("for update", await tx.select({ pages: t.books.pages }).from(t.books).orderBy(t.books.pages).for("update", { skipLocked: true }));
  }, { isolationLevel: "repeatable read" });
  await db.insert(t.books).values({ title: "x", author: 999 }).catch((e) => show("foreign", e.cause?.code ?? e.code, (e.cause ?? e).constraint));
  show("next", (await pool.query("select nextval('numbers'), nextval('numbers')")).rows);
  show("deleted", await db.delete(t.authors).where(eq(t.authors.id, ann.id)).returning({ name: t.authors.name }), await db.$count(t.books));
  await pool.end();
})().catch((e) => { console.log(e); process.exit(1); });
