// The page of one statement, at #statement=NUMBER: its figures, its waits, its times, its trend, its plan. What the server does not record is named.
"use strict";
let statement = null;   // the number of the statement that is shown; null: the other page

function statementLink(id) {
  return element("a", { href: `#statement=${id}`, "aria-label": `Page of statement ${id}` }, "page");
}

// Milliseconds of each ten seconds, as bars; the highest fills the height.
function trendOf(points, width, height, label) {
  const svg = drawn("svg", { viewBox: `0 0 ${Math.max(points.length, 30)} 100`, preserveAspectRatio: "none", width, height, role: "img", "aria-label": label });
  const top = Math.max(...points.map((p) => p[2]), 1e-9);
  points.forEach((p, i) => svg.append(drawn("rect", { x: i, y: 100 - 100 * p[2] / top, width: 0.9, height: 100 * p[2] / top, fill: "var(--strong)" })));
  return svg;
}

// Rows of label and value, with a bar for each value.
function barsTable(columns, rows, value) {
  const top = Math.max(...rows.map(value), 1e-9);
  const [table] = rowsTable([...columns, ""], rows.map((row) => [...row, null]));
  [...table.tBodies[0].rows].forEach((line, i) => {
    const svg = drawn("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" });
    svg.append(drawn("rect", { width: 100 * value(rows[i]) / top, height: 10, fill: "var(--strong)" }));
    line.lastChild.replaceChildren(svg);
  });
  return table;
}

function sqlOf(sql) {
  return sql ? [element("details", {}, element("summary", {}, "The SQL behind it"), element("pre", {}, sql))] : [];
}

// What a part of the page shows, or why there is nothing.
function partOf(part, draw) {
  const missing = part.missing ? [element("p", {}, part.missing)] : [];
  const shown = part.rows && part.rows.length ? draw(part) : part.missing ? [] : [element("p", {}, "Nothing.")];
  return [...missing, ...shown, ...sqlOf(part.sql)];
}

function drawStatement(told) {
  byId("statement-text").textContent = told.query || told.error || "";
  byId("statement-parts").hidden = !!told.error;
  if (told.error) return;
  // One column for each role, application and database that ran it.
  const names = told.figures.columns.map((c, i) => [c, i]).filter(([c]) => c !== "query");
  const [figures] = rowsTable(["figure", ...told.figures.rows.map(() => "")], names.map(([c, i]) => [c.replaceAll("_", " "), ...told.figures.rows.map((row) => row[i])]));
  byId("statement-figures").replaceChildren(figures, ...sqlOf(told.figures.sql));
  const last = (row) => Number(row[row.length - 1]);
  byId("statement-waits").replaceChildren(...partOf(told.waits, (part) => [barsTable(part.columns, part.rows, last)]));
  byId("statement-times").replaceChildren(...partOf(told.times, (part) => [barsTable(part.columns, part.rows, last)]));
  const points = told.trend, calls = points.reduce((sum, p) => sum + p[1], 0), ms = points.reduce((sum, p) => sum + p[2], 0);
  byId("statement-trend").replaceChildren(...(points.length
    ? [trendOf(points, "100%", 90, "Time of this statement every ten seconds"),
       element("p", { class: "help" }, `${clock(points[0][0])} to ${clock(points[points.length - 1][0])}: ${calls} calls, ${ms.toFixed(1)} ms. The highest bar is ${Math.max(...points.map((p) => p[2])).toFixed(1)} ms in ten seconds.`)]
    : [element("p", {}, "Nothing yet: the console reads the statements with the most time every ten seconds, and keeps an hour.")]));
  const plan = told.plan;
  byId("statement-plan").replaceChildren(...(plan.lines ? [element("pre", {}, plan.lines.join("\n")), ...sqlOf(plan.sql)]
    : partOf(plan, (part) => rowsTable(part.columns, part.rows))));
}

async function tellStatement() {
  const id = statement;
  if (id === null) return;
  try {
    const told = await get(`/api/statement?id=${id}`);
    if (statement === id) drawStatement(told);
  } catch (error) {
    if (!error.login) byId("statement-text").textContent = error.message;
  }
}

function route() {
  const found = /^#statement=(-?[0-9a-f]+)$/.exec(location.hash);
  statement = found ? found[1] : null;
  document.body.classList.toggle("one", statement !== null);
  byId("statement").hidden = statement === null;
  byId("statement-text").textContent = "asking ...";
  byId("statement-parts").hidden = true;
  if (statement !== null) {
    scrollTo(0, 0);
    tellStatement();
  }
}

addEventListener("hashchange", route);
addEventListener("DOMContentLoaded", () => {
  route();
  setInterval(() => { if (!byId("login").open && !document.hidden) tellStatement(); }, 10000);
});
