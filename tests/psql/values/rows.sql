-- whole rows, fields of rows, rows as JSON
CREATE TABLE items (id int, name text, price numeric(5,2), tags text[]);
INSERT INTO items VALUES (1, 'a "b"', 1.50, '{x,y}'), (2, NULL, NULL, NULL);
SELECT i FROM items i ORDER BY id;
SELECT row_to_json(i), to_jsonb(i) FROM items i ORDER BY id;
SELECT row_to_json(i.*) FROM items i ORDER BY id;
SELECT row_to_json(q, true) FROM (SELECT id, name FROM items ORDER BY id) q;
SELECT (i).name, (i.id) + 1 FROM items i ORDER BY id;
SELECT (i).nothing FROM items i;
SELECT items FROM items WHERE items IS NOT NULL;
SELECT json_build_object('item', i, 'n', 1) FROM items i WHERE id = 1;
SELECT (row(1, 'a'::text)).f2, (row(1, 2)).f1;
SELECT (1).x;
SELECT row(1, 'x y', NULL, 'a"b', '', '(c)', true, date '2020-01-01');
SELECT to_jsonb(q) -> 'id' FROM (SELECT * FROM items) q ORDER BY 1;
DROP TABLE items;
