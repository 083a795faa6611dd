// Sequelize: sync, sync with alter (twice: the second changes nothing), describe, associations, rows.
const { Sequelize, DataTypes, Op } = require("sequelize");
const { show, url } = require("./shown");

(async () => {
  const log = [];
  const s = new Sequelize(url, { logging: (text) => log.push(text.replace(/^Executing \([^)]*\): /, "")) });
  show("version", (await s.databaseVersion()).split(".")[0]);
  const User = s.define("User", {
    id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true },
    name: { type: DataTypes.STRING(80), allowNull: false, comment: "the full name" },
    role: { type: DataTypes.ENUM("admin", "guest"), defaultValue: "guest" },
    token: { type: DataTypes.UUID, defaultValue: "00000000-0000-0000-0000-000000000001" },
    profile: DataTypes.JSONB,
    tags: DataTypes.ARRAY(DataTypes.STRING),
    between: DataTypes.RANGE(DataTypes.INTEGER),
    balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
    seen: DataTypes.DATE,
    born: DataTypes.DATEONLY,
    big: DataTypes.BIGINT,
    photo: DataTypes.BLOB,
  }, { timestamps: false, indexes: [{ unique: true, fields: ["name"] }, { fields: ["role"] }, { unique: true, fields: [s.fn("lower", s.col("name"))], name: "lower_name" }, { fields: ["profile"], name: "with_role", where: { role: "admin" } }] });
  const Post = s.define("Post", { title: { type: DataTypes.STRING, allowNull: false }, body: DataTypes.TEXT }, { paranoid: true, timestamps: true });
  const Label = s.define("Label", { name: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false });
  User.hasMany(Post, { onDelete: "CASCADE" });
  Post.belongsTo(User);
  Post.belongsToMany(Label, { through: "PostLabels", timestamps: false });
  Label.belongsToMany(Post, { through: "PostLabels", timestamps: false });
  await s.sync({ force: true });
  const q = s.getQueryInterface();
  show("tables", (await q.showAllTables()).map((t) => t.tableName || t).sort());
  show("describe", await q.describeTable("Users"));
  const indexes = async (t) => (await q.showIndex(t)).map((i) => [i.name, i.primary, i.unique, i.fields.map((f) => f.attribute)]).sort();
  show("indexes", await indexes("Users"));
  show("keys", (await q.getForeignKeyReferencesForTable("Posts")).map((r) => ({ ...r, tableCatalog: 0, constraintCatalog: 0, referencedTableCatalog: 0 })));
  log.length = 0;
  await s.sync({ alter: true });
  show("alter", log.filter((l) => /^(ALTER|CREATE|DROP)/.test(l)));
  show("indexes after", await indexes("Users"));
  await q.addColumn("Users", "extra", { type: DataTypes.INTEGER, allowNull: false, defaultValue: 7 });
  await q.changeColumn("Users", "extra", { type: DataTypes.BIGINT, allowNull: true, defaultValue: null });
  await q.renameColumn("Users", "extra", "more");
  await q.addConstraint("Users", { fields: ["more"], type: "check", name: "more_positive", where: { more: { [Op.gte]: 0 } } });
  show("constraints", (await q.showConstraint("Users")).map((c) => [c.constraintName.replace(/^[0-9_]+/, ""), c.constraintType]).sort());
  await q.removeConstraint("Users", "more_positive");
  await q.removeColumn("Users", "more");

  const ann = await User.create({ name: "Ann", profile: { a: { b: 1 } }, tags: ["x", "y"], between: [1, 5], seen: new Date(0), born: "2020-02-03", big: "9007199254740993", photo: Buffer.from("hi") });
  show("created", (await User.findByPk(ann.id)).toJSON());
  await User.bulkCreate([{ name: "Bob", role: "admin" }, { name: "Cid" }, { name: "Ann", balance: 5 }], { updateOnDuplicate: ["balance"], conflictAttributes: ["name"] });
  show("upsert", (await User.upsert({ id: ann.id, name: "Ann", balance: 9 }))[0].balance);
  show("found", (await User.findAll({ where: { [Op.or]: [{ name: { [Op.iLike]: "a%" } }, { tags: { [Op.contains]: ["x"] } }, { "profile.a.b": 1 }] }, order: [["id", "DESC"]], attributes: ["name", "balance"] })).map((u) => u.toJSON()));
  show("range", await User.count({ where: { between: { [Op.contains]: 3 } } }));
  const [found, made] = await User.findOrCreate({ where: { name: "Dan" }, defaults: { role: "guest" } });
  show("findOrCreate", found.name, made);
  const post = await Post.create({ title: "One", UserId: ann.id });
  await post.addLabels(await Label.bulkCreate([{ name: "red" }, { name: "blue" }]));
  show("include", (await User.findAll({ include: [{ model: Post, include: Label, required: true }], order: [[Post, Label, "name", "ASC"]] })).map((u) => [u.name, u.Posts.map((p) => [p.title, p.Labels.map((l) => l.name)])]));
  await post.destroy();
  show("paranoid", await Post.count(), await Post.count({ paranoid: false }));
  await post.restore();
  show("aggregate", await User.findAll({ attributes: ["role", [s.fn("COUNT", s.col("id")), "n"], [s.fn("SUM", s.col("balance")), "sum"]], group: ["role"], order: ["role"], raw: true }));
  await s.transaction(async (t) => {
    const u = await User.findOne({ where: { name: "Bob" }, lock: t.LOCK.UPDATE, transaction: t });
    await u.increment("balance", { by: 3, transaction: t });
    await s.transaction({ transaction: t }, async (inner) => { await User.destroy({ where: {}, transaction: inner }); throw new Error("undone"); }).catch((e) => show("inner", e.message));
  });
  show("balances", (await User.findAll({ order: ["id"] })).map((u) => [u.name, u.balance, u.role]));
  await User.create({ name: "Ann" }).catch((e) => show("unique", e.name, e.fields, e.errors.map((x) => x.message)));
  await Post.create({ title: "x", UserId: 999 }).catch((e) => show("foreign", e.name, e.table, e.fields, e.index));
  await s.query("insert into \"Users\" (name, role) values ('E', 'none')").catch((e) => show("enum", e.name, e.message));
  show("updated", await User.update({ role: "admin" }, { where: { name: "Cid" }, returning: ["id", "role"] }).then(([n, rows]) => [n, rows.map((r) => r.role)]));
  show("deleted", await User.destroy({ where: { id: ann.id } }), await Post.count({ paranoid: false }));
  await User.truncate({ cascade: true, restartIdentity: true });
  show("restarted", (await User.create({ name: "Z" })).id);
  show("schemas", (await s.createSchema("other"), (await s.showAllSchemas()).includes("other")));
  await s.dropSchema("other");
  for (const model of [s.models.PostLabels, Label, Post, User]) await model.drop({ cascade: true });
  await s.close();
})().catch((e) => { console.log(e); process.exit(1); });
