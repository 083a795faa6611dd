// TypeORM: synchronize (twice: the second changes nothing), the migration that it would generate, reflection, rows.
require("reflect-metadata");
const { DataSource, EntitySchema, In, Raw, MoreThan } = require("typeorm");
const { show, url } = require("./shown");

const Author = new EntitySchema({
  name: "Author", tableName: "author",
  columns: {
    id: { type: Number, primary: true, generated: "identity" },
    name: { type: "varchar", length: 80, unique: true, comment: "the full name" },
    kind: { type: "enum", enum: ["human", "robot"], default: "human" },
    settings: { type: "jsonb", default: {} },
    tags: { type: "text", array: true, default: [] },
    born: { type: "date", nullable: true },
    rating: { type: "numeric", precision: 6, scale: 2, default: 1.5 },
    upper: { type: "text", generatedType: "STORED", asExpression: "upper(name)", nullable: true },
    created: { type: "timestamptz", default: () => "'2020-01-01 00:00:00+00'" },
    version: { type: Number, version: true },
    removed: { type: "timestamp", deleteDate: true, nullable: true },
  },
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "author", cascade: true } },
  checks: [{ name: "rated", expression: '"rating" >= 0' }],
});
const Book = new EntitySchema({
  name: "Book", tableName: "book",
  columns: {
    id: { type: "uuid", primary: true, generated: "uuid" },
    title: { type: "text" },
    pages: { type: "int", default: 0 },
    span: { type: "int4range", nullable: true },
    took: { type: "interval", nullable: true },
    at: { type: "time", nullable: true },
    flags: { type: "bit", length: 3, nullable: true },
    address: { type: "inet", nullable: true },
  },
  indices: [{ name: "by_title", columns: ["title"], where: '"pages" > 0' }, { name: "once", columns: ["title", "pages"], unique: true }],
  relations: {
    author: { type: "many-to-one", target: "Author", inverseSide: "books", onDelete: "CASCADE", joinColumn: { name: "author_id" }, nullable: false },
    labels: { type: "many-to-many", target: "Label", joinTable: { name: "book_label" }, cascade: true },
  },
});
const Label = new EntitySchema({ name: "Label", tableName: "label", columns: { name: { type: "varchar", primary: true } } });
const Node = new EntitySchema({
  name: "Node", tableName: "node",
  columns: { id: { type: Number, primary: true, generated: "increment" }, name: { type: "char", length: 5 } },
  relations: {
    parent: { type: "many-to-one", target: "Node", treeParent: true, inverseSide: "children", nullable: true },
    children: { type: "one-to-many", target: "Node", treeChildren: true, inverseSide: "parent", cascade: true },
  },
  trees: [{ type: "closure-table" }],
});
const Dear = new EntitySchema({
  name: "Dear", tableName: "dear", type: "view", expression: 'SELECT "title", "pages" FROM "book" WHERE "pages" > 100',
  columns: { title: { type: String }, pages: { type: Number } },
});

(async () => {
  const d = new DataSource({ type: "postgres", url, entities: [Author, Book, Label, Node, Dear], synchronize: false, logging: false, installExtensions: true });
  await d.initialize();
  const left = async () => (await d.driver.createSchemaBuilder().log()).upQueries.map((x) => x.query);
  show("to be made", await left());
  await d.synchronize();
  show("left after synchronize", await left());
  await d.synchronize();
  const runner = d.createQueryRunner();
  const table = await runner.getTable("author");
  show("columns", table.columns.map((c) => [c.name, c.type, c.length, c.isNullable, c.default, c.isPrimary, c.isGenerated, c.generationStrategy, c.isUnique, c.isArray, c.enum, c.precision, c.scale, c.comment, c.asExpression, c.generatedType]).sort());
  show("checks", table.checks.map((c) => [c.name, c.expression]), table.uniques.map((u) => u.columnNames));
  const book = await runner.getTable("book");
  show("book", book.columns.map((c) => [c.name, c.type, c.length]).sort(), book.indices.map((i) => [i.name, i.columnNames, i.isUnique, i.where]).sort(), book.foreignKeys.map((f) => [f.columnNames, f.referencedTableName, f.onDelete, f.onUpdate]));
  show("view", (await runner.getView("dear")).expression);
  await runner.addColumn("label", new (require("typeorm").TableColumn)({ name: "extra", type: "int", default: 3 }));
  await runner.changeColumn("label", "extra", new (require("typeorm").TableColumn)({ name: "more", type: "bigint", isNullable: true }));
  show("to be removed", await left());
  await d.synchronize();
  await runner.release();

  const authors = d.getRepository("Author"), books = d.getRepository("Book");
  const ann = await authors.save({ name: "Ann", settings: { a: [1] }, tags: ["x", "y"], born: "1990-01-02", books: [
    { title: "One", pages: 120, span: "[1,4)", took: "1 day 02:00:00", at: "10:20:30", flags: "101", address: "10.0.0.1", labels: [{ name: "red" }, { name: "blue" }] }, { title: "Two", pages: 5 }] });
  show("saved", ann.id, ann.version, ann.rating, ann.upper, ann.created);
  const strip = (o) => JSON.parse(JSON.stringify(o, (k, v) => (/^[0-9a-f]{8}-/.test(v) ? "uuid" : v)));
  show("found", strip(await authors.find({ relations: { books: { labels: true } }, order: { books: { title: "ASC", labels: { name: "ASC" } } } })));
  ann.rating = 3;
  await authors.save(ann);
  show("version", (await authors.findOneByOrFail({ id: ann.id })).version);
  show("paged", strip(await books.findAndCount({ relations: { author: true }, take: 1, skip: 1, order: { title: "ASC" } })));
  show("where", await books.count({ where: { title: In(["One", "Three"]), pages: MoreThan(3), author: { name: Raw((x) => `lower(${x}) = 'ann'`) } } }));
  show("upsert", (await authors.upsert([{ name: "Ann", rating: 7 }, { name: "Bob" }], ["name"])).identifiers.length);
  show("builder", await books.createQueryBuilder("b").leftJoin("b.author", "a").select("a.name", "name").addSelect("sum(b.pages)", "pages").groupBy("a.name").having("sum(b.pages) > :n", { n: 1 }).getRawMany());
  show("subquery", await authors.createQueryBuilder("a").where((q) => "exists " + q.subQuery().select("1").from("Book", "b").where("b.author_id = a.id").getQuery()).getCount());
  show("lock", await d.transaction(async (m) => (await m.getRepository("Author").findOne({ where: { name: "Bob" }, lock: { mode: "pessimistic_write" } })).name));
  await d.transaction(async (m) => {
    await m.getRepository("Label").insert({ name: "kept" });
    await m.transaction(async (inner) => { await inner.getRepository("Label").insert({ name: "undone" }); throw new Error("undone"); }).catch((e) => show("inner", e.message));
  });
  show("labels", (await d.getRepository("Label").find({ order: { name: "ASC" } })).map((l) => l.name));
  show("returning", (await books.createQueryBuilder().update().set({ pages: () => "pages + 1" }).where("title = :t", { t: "Two" }).returning(["title", "pages"]).execute()).raw);
  show("dear", await d.getRepository("Dear").find());
  const trees = d.getTreeRepository("Node");
  const root = await trees.save({ name: "r" });
  const child = await trees.save({ name: "c", parent: root });
  await trees.save({ name: "g", parent: child });
  show("tree", await trees.findTrees(), await trees.countDescendants(root));
  await authors.softDelete({ name: "Bob" });
  show("soft", await authors.count(), await authors.count({ withDeleted: true }));
  await authors.insert({ name: "Ann" }).catch((e) => show("unique", e.name, e.driverError.code, e.driverError.table, e.driverError.detail));
  await authors.delete({ id: ann.id });
  show("cascaded", await books.count());
})().then(() => process.exit(0)).catch((e) => { console.log(e); process.exit(1); });
