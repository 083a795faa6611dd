-- A schema with every defect that `clearway check schema` looks for, and beside each a column that has it not.
CREATE SCHEMA shop;
CREATE TABLE shop.customer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    age bigint, visits int, balance_cents bigint,
    -- Texts that are something else, and texts that are not.
    loyalty_points varchar(20), weight varchar(20), born varchar(10), seen_at varchar(30), address text, token varchar(40),
    zip char(6), phone varchar(20), nickname varchar(255), biography varchar(255), note text
);
INSERT INTO shop.customer (age, visits, balance_cents, loyalty_points, weight, born, seen_at, address, token, zip, phone, nickname, biography, note)
  SELECT g % 90, 40000 + g, 5000000000 + g, (g * 37 % 100000)::text, (g % 200)::text || '.' || (g % 10)::text,
    to_char(date '1950-01-01' + g, 'YYYY-MM-DD'), to_char(timestamp '2026-01-01' + g * interval '1 minute', 'YYYY-MM-DD HH24:MI:SS'),
    '10.0.' || g % 256 || '.' || g % 250, '00000000-0000-4000-8000-' || lpad(g::text, 12, '0'), lpad((g * 7 % 1000000)::text, 6, '0'),
    '49' || g * 1000, 'nick' || g % 100, repeat('b', 10 + g % 200), CASE WHEN g % 3 = 0 THEN g::text ELSE 'about ' || g END
  FROM generate_series(1, 2000) g;
-- A long key, repeated in two indexes, of which one is the beginning of the other.
CREATE TABLE shop.event (host text, name text, at timestamp, kind int, PRIMARY KEY (host, name, at));
CREATE INDEX event_kind ON shop.event (kind);
CREATE INDEX event_kind_at ON shop.event (kind, at);
INSERT INTO shop.event SELECT 'host-number-' || g % 100 || '.example.org', 'event number ' || g, timestamp '2026-01-01', 70000 + g % 7 FROM generate_series(1, 2000) g;
-- No key; a reference without an index; one with.
CREATE TABLE shop.log (said text);
CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer bigint REFERENCES shop.customer, seller bigint REFERENCES shop.customer);
CREATE INDEX orders_customer ON shop.orders (customer);
-- Dates that are none: the pattern fits, the calendar does not.
CREATE TABLE shop.odd (id bigint PRIMARY KEY, day varchar(10), code varchar(10));
INSERT INTO shop.odd SELECT 3000000000 + g, '2026-02-' || lpad((g % 31 + 1)::text, 2, '0'), '00' || g FROM generate_series(1, 2000) g;
