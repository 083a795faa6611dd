-- inet and cidr
SELECT '192.168.1.5/24'::inet, '192.168.1.5'::inet, '10.1/16'::cidr, '10'::cidr, '::1'::inet, '2001:db8::/32'::cidr, '::ffff:1.2.3.4'::inet, '::1.2.3.4/128'::inet, '1.2.3.4'::cidr;
SELECT '192.168.1.5/24'::cidr;
SELECT '192.168.1'::inet;
SELECT '1.2.3.4/33'::inet;
SELECT 'abc'::cidr;
SELECT host('1.2.3.4/24'), text(inet '1.2.3.4'), abbrev(inet '10.1.0.0/32'), abbrev(cidr '10.1.0.0/16'), family('::1'), masklen('1.2.3.4/24'), netmask('1.2.3.4/24'), hostmask('1.2.3.4/24'), network('1.2.3.4/24'), broadcast('1.2.3.4/24'), set_masklen('1.2.3.4/24'::inet, 16), set_masklen('1.2.3.0/24'::cidr, 16), inet_same_family('1.2.3.4', '::1'), inet_merge('192.168.1.5/24', '192.168.2.5/24');
SELECT inet '192.168.1.5' << inet '192.168.1/24', inet '192.168.1/24' <<= inet '192.168.1/24', inet '192.168.1/24' >> inet '192.168.1.5', inet '192.168.1/24' && inet '192.168.1.80/28', ~ inet '192.168.1.6', inet '192.168.1.6' & inet '0.0.0.255', inet '192.168.1.6' | inet '0.0.0.255', inet '192.168.1.6' + 25, inet '192.168.1.43' - 36, inet '192.168.1.43' - inet '192.168.1.19';
SELECT inet '255.255.255.255' + 1;
SELECT '1.2.3.4'::inet::text, '1.2.3.0/24'::cidr::inet, '1.2.3.4/24'::inet::cidr, '1.2.3.4'::inet = '1.2.3.4/32', '1.2.3.4'::inet < '1.2.3.5';
CREATE TABLE hosts (a inet PRIMARY KEY, n cidr);
INSERT INTO hosts VALUES ('10.0.0.2', '10.0.0.0/8'), ('10.0.0.1/8', '10/8'), ('::1', '::/0'), ('9.255.0.1', '9.255/16'), ('10.0.0.1', NULL);
SELECT * FROM hosts ORDER BY a;
SELECT a FROM hosts WHERE a = '10.0.0.1';
SELECT a FROM hosts WHERE a << '10/8' ORDER BY a;
DROP TABLE hosts;
