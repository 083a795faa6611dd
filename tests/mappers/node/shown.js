// What every program prints: a line for each step, the same on every server.
exports.url = process.env.DATABASE_URL;
exports.show = (what, ...values) => console.log(what, JSON.stringify(values, (_, v) => (typeof v === "bigint" ? `${v}n` : v)));
