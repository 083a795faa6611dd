// Knex: migrations up, down and up again, alterations of columns, what it reflects, and rows.
const knex = require("knex");
const { show, url } = require("./shown");

const migrations = {
  "1_tables": {
    async up(k) {
      await k.schema.createTable("author", (t) => {
        t.increments("id");
        t.string("name", 80).notNullable().unique();
        t.enu("level", ["junior", "senior"], { useNative: true, enumName: "author_level" }).defaultTo("junior");
        t.jsonb("settings").notNullable().defaultTo("{}");
        t.specificType("tags", "text[]");
        t.uuid("token").defaultTo(k.fn.uuid());
        t.timestamps(true, true);
      });
      await k.schema.createTable("book", (t) => {
        t.bigIncrements("id");
        t.integer("author_id").unsigned().notNullable().references("id").inTable("author").onDelete("CASCADE").index();
        t.decimal("price", 10, 2).notNullable().defaultTo(0);
        t.date("published");
        t.boolean("sold").defaultTo(false);
        t.binary("cover");
        t.text("title").comment("what stands on the cover");
        t.check("?? >= 0", ["price"], "price_positive");
        t.unique(["author_id", "title"], { indexName: "one_title" });
        t.index(["published"], "published_idx", { predicate: k.whereNotNull("published") });
        t.comment("books and their prices");
      });
    },
    async down(k) {
      await k.schema.dropTable("book");
      await k.schema.dropTable("author");
      await k.raw("DROP TYPE author_level");
    },
  },
  "2_columns": {
    async up(k) {
      await k.schema.alterTable("book", (t) => {
        t.string("isbn", 13).nullable();
        t.renameColumn("sold", "is_sold");
        t.decimal("price", 12, 3).notNullable().defaultTo(1).alter();
        t.dropNullable("title");
        t.unique(["isbn"], { deferrable: "deferred" });
      });
      await k.schema.createView("dear", (v) => {
        v.columns(["id", "title"]);
        v.as(k("book").select("id", "title").where("price", ">", 10));
      });
    },
    async down(k) {
      await k.schema.dropView("dear");
      await k.schema.alterTable("book", (t) => {
        t.dropUnique(["isbn"]);
        t.dropColumn("isbn");
        t.renameColumn("is_sold", "sold");
        t.decimal("price", 10, 2).notNullable().defaultTo(0).alter();
        t.setNullable("title");
      });
    },
  },
};

const source = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
};

(async () => {
  const k = knex({ client: "pg", connection: url, migrations: { migrationSource: source } });
  show("latest", await k.migrate.latest());
  show("columns of book", await k("book").columnInfo());
  show("columns of author", await k("author").columnInfo());
  show("status", await k.migrate.status(), await k.migrate.currentVersion());
  show("rollback", await k.migrate.rollback());
  show("tables left", await k.schema.hasTable("book"), await k.schema.hasTable("author"));
  show("again", await k.migrate.latest());
  show("down", await k.migrate.down());
  show("columns after down", await k("book").columnInfo());
  show("up", await k.migrate.up());
  show("list", await k.migrate.list().then(([done, left]) => [done.map((m) => m.name), left]));
  show("has", await k.schema.hasTable("book"), await k.schema.hasColumn("book", "isbn"), await k.schema.hasColumn("book", "sold"));

  const [{ id }] = await k("author").insert({ name: "Ann", tags: ["a", "b"], settings: { theme: "dark", sizes: [1, 2] } }).returning("id");
  await k("author").insert({ name: "Ann", level: "senior" }).onConflict("name").merge(["level"]);
  await k("author").insert({ name: "Ann" }).onConflict("name").ignore();
  show("author", await k("author").select("id", "name", "level", "settings", "tags").first());
  await k.batchInsert("book", Array.from({ length: 50 }, (_, i) => ({ author_id: id, title: `t${i}`, price: i / 2, cover: Buffer.from([i]) })), 20);
  show("sum", await k("book").sum("price").count("* as n").first());
  show("page", await k("book").select("title", "price").orderBy("price", "desc").limit(3).offset(2));
  show("view", await k("dear").count().first());
  show("json", await k("author").jsonExtract("settings", "$.theme", "theme").whereJsonSupersetOf("settings", { theme: "dark" }).first());
  show("path", await k("author").whereJsonPath("settings", "$.sizes[0]", "=", 1).select("name"));
  show("with", await k.with("w", k("book").select("author_id").count("* as n").groupBy("author_id")).select("*").from("w"));
  show("join", await k("author").join("book", "author.id", "book.author_id").where("book.title", "like", "t1_").countDistinct("book.id as n").first());
  show("distinct on", await k("book").distinctOn("author_id").orderBy(["author_id", "title"]).select("title"));
  show("window", await k("book").select("title").rank("r", (w) => w.orderBy("price", "desc").partitionBy("author_id")).orderBy("r").limit(2));
  show("union", await k("book").select("title").where("price", 1).union(k("book").select("title").where("price", 2)).orderBy("title"));
  await k.transaction(async (trx) => {
    await trx("book").where("title", "t1").forUpdate().first();
    await trx.transaction((inner) => inner("book").where("title", "t1").update({ price: 99 })).catch(() => {});
    await trx.transaction(async (inner) => { await inner("book").del(); throw new Error("undone"); }).catch((e) => show("inner", e.message));
    show("increment", await trx("book").where("title", "t1").increment("price", 1).returning(["title", "price"]));
  });
  show("skip locked", await k("book").where("price", ">", 24).forUpdate().skipLocked().orderBy("price").select("title"));
  for (const [what, q] of Object.entries({
    unique: k("author").insert({ name: "Ann" }),
    foreign: k("book").insert({ author_id: 99, title: "x" }),
    check: k("book").insert({ author_id: id, title: "x", price: -1 }),
    enum: k("author").insert({ name: "B", level: "none" }),
  })) await q.catch((e) => show(what, e.code, e.constraint, e.message));
  show("deleted", await k("author").where({ id }).del(), await k("book").count().first());
  show("rolled back", await k.migrate.rollback(undefined, true));
  await k.destroy();
})().catch((e) => { console.log(e); process.exit(1); });
