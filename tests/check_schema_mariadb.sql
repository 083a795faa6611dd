-- A schema of MariaDB with every defect that `clearway check schema` looks for, and beside each a column that has it not.
CREATE DATABASE shop;
USE shop;
CREATE TABLE shop.customer (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    age bigint NOT NULL DEFAULT 18 COMMENT 'in years, it''s a guess', visits int, level int unsigned, balance_cents bigint, padded int(8) zerofill,
    -- Texts that are something else, and texts that are not.
    loyalty_points varchar(20), weight varchar(20), born varchar(10), seen_at varchar(30), address varchar(60), address_6 text, any_address varchar(60) NOT NULL, token varchar(40),
    zip char(6), phone varchar(20), nickname varchar(255) CHARACTER SET latin1 NOT NULL DEFAULT 'nobody', biography varchar(255), note text, document json
);
INSERT INTO shop.customer (age, visits, level, balance_cents, padded, loyalty_points, weight, born, seen_at, address, address_6, any_address, token, zip, phone, nickname, biography, note, document)
  SELECT seq % 90, 9000000 + seq, seq % 200, 5000000000 + seq, seq % 7, seq * 37 % 100000, concat(seq % 200, '.', seq % 10),
    date_format('1950-01-01' + INTERVAL seq DAY, '%Y-%m-%d'), date_format('2026-01-01' + INTERVAL seq MINUTE, '%Y-%m-%d %H:%i:%s'),
    concat('10.0.', seq % 256, '.', seq % 250), concat('fe80::', hex(seq % 60000)), if(seq % 2, concat('10.1.0.', seq % 250), concat('fe80::', hex(seq % 60000))),
    concat('00000000-0000-4000-8000-', lpad(seq, 12, '0')), lpad(seq * 7 % 1000000, 6, '0'),
    concat('49', seq * 1000), concat('nick', seq % 100), repeat('b', 10 + seq % 200), if(seq % 3, concat('about ', seq), seq), json_array(seq)
  FROM seq_1_to_2000;
-- A long key, repeated in two indexes, of which one is the beginning of the other.
CREATE TABLE shop.event (host varchar(60), name varchar(60), at datetime, kind int, PRIMARY KEY (host, name, at), KEY event_kind (kind), KEY event_kind_at (kind, at));
INSERT INTO shop.event SELECT concat('host-number-', seq % 100, '.example.org'), concat('event number ', seq), '2026-01-01', 9000000 + seq % 7 FROM seq_1_to_2000;
-- No key; references, which InnoDB gives an index each.
CREATE TABLE shop.log (said text);
CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer bigint, seller bigint, FOREIGN KEY (customer) REFERENCES shop.customer (id), FOREIGN KEY (seller) REFERENCES shop.customer (id));
-- Dates that are none: the pattern fits, the calendar does not.
CREATE TABLE shop.odd (id bigint PRIMARY KEY, day varchar(10), code varchar(10));
INSERT INTO shop.odd SELECT 3000000000 + seq, concat('2026-02-', lpad(seq % 31 + 1, 2, '0')), concat('00', seq) FROM seq_1_to_2000;
