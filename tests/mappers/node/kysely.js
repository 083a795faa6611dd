// Kysely: migrations, introspection, rows.
const { Kysely, PostgresDialect, Migrator, sql } = require("kysely");
const { Pool } = require("pg");
const { show, url } = require("./shown");

const migrations = {
  a: {
    async up(db) {
      await db.schema.createType("mood").asEnum(["sad", "ok", "happy"]).execute();
      await db.schema.createTable("person").addColumn("id", "serial", (c) => c.primaryKey())
        .addColumn("name", "varchar(50)", (c) => c.notNull().unique())
        .addColumn("mood", sql`mood`, (c) => c.defaultTo("ok"))
        .addColumn("meta", "jsonb").addColumn("at", "timestamptz", (c) => c.notNull().defaultTo(sql`'2020-01-01'::timestamptz`))
        .addColumn("doubled", "integer", (c) => c.generatedAlwaysAs(sql`length(name) * 2`).stored()).execute();
      await db.schema.createTable("pet").addColumn("id", "bigint", (c) => c.primaryKey().generatedAlwaysAsIdentity())
        .addColumn("owner_id", "integer", (c) => c.references("person.id").onDelete("cascade").notNull())
        .addColumn("name", "text", (c) => c.notNull()).addUniqueConstraint("pet_once", ["owner_id", "name"])
        .addCheckConstraint("pet_named", sql`name <> ''`).execute();
      await db.schema.createIndex("pet_owner").on("pet").column("owner_id").where("name", "!=", "x").execute();
      await db.schema.createView("happy").as(db.selectFrom("person").selectAll().where("mood", "=", "happy")).execute();
    },
    async down(db) {
      await db.schema.dropView("happy").execute();
      await db.schema.dropTable("pet").execute();
      await db.schema.dropTable("person").execute();
      await db.schema.dropType("mood").execute();
    },
  },
  b: {
    async up(db) {
      await db.schema.alterTable("person").addColumn("age", "int2").alterColumn("meta", (c) => c.setDefault(sql`'{}'::jsonb`)).execute();
      await db.schema.alterTable("pet").alterColumn("name", (c) => c.setDataType("varchar(90)")).execute();
    },
    async down(db) { await db.schema.alterTable("person").dropColumn("age").execute(); },
  },
};

(async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 3 }) }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const run = async (what) => { const r = await migrator[what](); if (r.error) throw r.error; show(what, r.results); };
  await run("migrateToLatest");
  const tables = async (withInternal) => (await db.introspection.getTables({ withInternalKyselyTables: withInternal })).sort((a, b) => (a.name < b.name ? -1 : 1));
  show("tables", await tables(true));
  await run("migrateDown");
  await run("migrateUp");
  show("schemas", (await db.introspection.getSchemas()).map((s) => s.name).filter((n) => !n.startsWith("pg_") && !n.startsWith("clearway") && !["sys", "performance_schema", "ps_helper", "mysql"].includes(n)).sort());
  const ann = await db.insertInto("person").values({ name: "Ann", mood: "happy", meta: JSON.stringify({ a: [1, 2] }) }).returningAll().executeTakeFirstOrThrow();
  show("inserted", ann);
  show("conflict", await db.insertInto("person").values({ name: "Ann" }).onConflict((c) => c.column("name").doUpdateSet({ age: 3 })).returning(["id", "age"]).execute());
  await db.insertInto("pet").values([{ owner_id: ann.id, name: "Cat" }, { owner_id: ann.id, name: "Dog" }]).execute();
  const { jsonArrayFrom, jsonObjectFrom } = require("kysely/helpers/postgres");
  show("json", await db.selectFrom("person").select((e) => ["name", jsonArrayFrom(e.selectFrom("pet").select(["pet.name", "pet.id"]).whereRef("owner_id", "=", "person.id").orderBy("pet.id")).as("pets")]).execute());
  show("object", await db.selectFrom("pet").select((e) => ["name", jsonObjectFrom(e.selectFrom("person").select("person.name").whereRef("person.id", "=", "owner_id")).as("owner")]).orderBy("name").execute());
  show("lateral", await db.selectFrom("person").innerJoinLateral((e) => e.selectFrom("pet").select("name as n").whereRef("owner_id", "=", "person.id").orderBy("name", "desc").limit(1).as("l"), (j) => j.onTrue()).selectAll("l").execute());
  show("update", await db.updateTable("pet").from("person").set({ name: "Cow" }).whereRef("owner_id", "=", "person.id").where("pet.name", "=", "Cat").returning("pet.name").execute());
  show("merge", await db.mergeInto("person").using("pet", "pet.owner_id", "person.id").whenMatchedAnd("pet.name", "=", "Dog").thenUpdateSet({ mood: "sad" }).whenMatched().thenDoNothing().execute().then((r) => r.map((x) => x.numChangedRows)));
  show("stream", await (async () => { const all = []; for await (const r of db.selectFrom("pet").select("name").orderBy("name").stream()) all.push(r.name); return all; })().catch((e) => e.message.slice(0, 60)));
  await db.transaction().setIsolationLevel("repeatable read").execute(async (t) => show("transaction", await t.selectFrom("pet").select((e) => e.fn.countAll().as("n")).executeTakeFirst()));
  await db.insertInto("pet").values({ owner_id: 77, name: "x" }).execute().catch((e) => show("foreign", e.code, e.constraint, e.detail));
  show("explain", (await db.selectFrom("person").selectAll().where("id", "=", 1).explain("json")).length);
  show("deleted", await db.deleteFrom("person").where("id", "=", ann.id).executeTakeFirst());
  const { NO_MIGRATIONS } = require("kysely");
  const r = await migrator.migrateTo(NO_MIGRATIONS);
  if (r.error) throw r.error;
  show("none", (await tables(false)).map((t) => t.name));
  await db.destroy();
})().catch((e) => { console.log(e); process.exit(1); });
