#!/usr/bin/env python3
"""Statement kinds by roles: the answer and the SQLSTATE of Clearway are those of PostgreSQL 15.

Each statement runs in a transaction of its own, as each role, on both servers; what differs is printed. The last line is
`N passed, N failed`.

usage: tests/rights.py CLEARWAY_PORT POSTGRES_PORT     (both on 127.0.0.1, superuser postgres, no password)
"""
import socket
import struct
import sys

SETUP = """
create role m_owner; create role m_group; create role m_granted; create role m_member in role m_group;
create role m_noinherit noinherit in role m_group; create role m_stranger; create role m_columns;
create role m_reader in role pg_read_all_data; create role m_writer in role pg_write_all_data;
create schema m; grant usage on schema m to public; grant create on schema m to m_owner;
create schema m_closed; create table m_closed.t (id int);
create table m.t (id int primary key, a int, b int); insert into m.t values (1, 2, 3);
create table m.other (id int primary key); create sequence m.s; create view m.v as select a, b from m.t;
create materialized view m.mv as select a from m.t;
alter table m.t owner to m_owner; alter table m.other owner to m_owner; alter sequence m.s owner to m_owner;
alter view m.v owner to m_owner; alter materialized view m.mv owner to m_owner;
grant all on m.t, m.v, m.mv to m_granted, m_group; grant all on sequence m.s to m_granted, m_group;
grant select (id, a), insert (id), update (a), references (id) on m.t to m_columns;
create role m_dropped; grant select on m.other to m_dropped;
create role m_bypass bypassrls; grant m_group to m_bypass; create role m_copier replication;
create table m.p (id int primary key, who name, n int); alter table m.p owner to m_owner;
insert into m.p values (1, 'm_member', 1), (2, 'm_granted', 2), (3, 'm_owner', 3), (4, 'm_member', 40);
grant all on m.p to m_granted, m_group, m_columns, m_reader; alter table m.p enable row level security;
create policy p_own on m.p to m_group, m_granted using (who = current_user) with check (n < 50);
create policy p_low on m.p as restrictive for select using (n < 30);
create policy p_seen on m.p for select to m_reader using (id > (select min(x.id) from m.other x) or id < 3);
create view m.pv as select * from m.p; alter view m.pv owner to m_owner; grant all on m.pv to m_granted, m_group;
create function m.f(int) returns int language sql as 'select $1 + 1'; create function m.kept(int) returns int language sql as 'select $1 + 1';
create function m.reads() returns bigint language sql as 'select sum(a) from m.t';
create function m.owners() returns bigint security definer language sql as 'select sum(a) from m.t';
create function m.who() returns name security definer language sql as 'select current_user';
create procedure m.adds(int) language sql as 'insert into m.t (id) values ($1)';
create view m.fv as select m.f(1) as f; alter view m.fv owner to m_owner; grant select on m.fv to public;
alter function m.f owner to m_owner; alter function m.reads owner to m_owner; alter function m.owners owner to m_owner;
alter function m.who owner to m_owner; alter procedure m.adds owner to m_owner; alter function m.kept owner to m_owner;
revoke execute on function m.f from public; revoke execute on procedure m.adds from public;
grant execute on function m.f to m_granted, m_group; grant all on procedure m.adds to m_granted, m_group;
create type m.c1 as (a int, b text); alter type m.c1 owner to m_owner; create type m.e1 as enum ('a', 'b'); alter type m.e1 owner to m_owner;
create domain m.d1 as int; alter domain m.d1 owner to m_owner; revoke usage on type m.e1 from public; grant usage on type m.e1 to m_granted, m_group;
create view m.bv with (security_barrier) as select id, a from m.t; alter view m.bv owner to m_owner; grant all on m.bv to m_granted, m_group
"""
CLEAN = """
drop view m.bv; drop type m.c1; drop type m.e1; drop domain m.d1; drop view m.fv; drop function m.f; drop function m.reads; drop function m.owners; drop function m.who; drop procedure m.adds;
drop function m.kept; drop view m.pv; drop table m.p; drop role m_bypass; drop role m_copier;
drop materialized view m.mv; drop view m.v; drop table m.t; drop table m.other; drop sequence m.s; drop table m_closed.t;
drop schema m; drop schema m_closed; drop role m_member; drop role m_noinherit; drop role m_granted; drop role m_stranger;
drop role m_columns; drop role m_reader; drop role m_writer; drop role m_renamed; drop role m_group; drop role m_owner
"""
ROLES = ["m_owner", "m_granted", "m_member", "m_noinherit", "m_stranger", "m_columns", "m_reader", "m_writer", "m_renamed", "m_bypass", "m_copier", "dropped"]
STATEMENTS = """
select * from m.t
select a from m.t
select b from m.t
select count(*) from m.t
select t.* from m.t
select a from m.t where b = 3
select a from m.t order by b
select a from m.t for update
select id from m.t for share
select * from m.v
select a from m.v
select * from m.mv
select * from m_closed.t
select x.a from m.t x join m.other y using (id)
with w as (select b from m.t) select * from w
select (select b from m.t limit 1)
select 1 where exists (select 1 from m.t)
insert into m.t values (5, 5, 5)
insert into m.t (id) values (5)
insert into m.t (id) values (5) returning id
insert into m.t (id) values (5) returning b
insert into m.t default values
insert into m.t (id) values (1) on conflict do nothing
insert into m.t (id) values (1) on conflict (id) do nothing
insert into m.t (id) values (1) on conflict (id) do update set a = 7
insert into m.t (id) values (1) on conflict (id) do update set a = t.b
insert into m.t (id) values (1) on conflict (id) do update set a = excluded.b
insert into m.t (id) values (1) on conflict (id) do update set b = 7
insert into m.t (id) select b from m.t where false
update m.t set a = 1
update m.t set a = b
update m.t set a = a + 1
update m.t set b = 1
update m.t set a = 1 where id = 1
update m.t set a = 1 where b = 1
update m.t set a = 1 returning a
update m.t set a = 1 returning b
update m.t set a = y.id from m.other y
delete from m.t
delete from m.t where id = 9
delete from m.t returning id
truncate m.t
lock table m.t in access share mode
lock table m.t in row share mode
lock table m.t in row exclusive mode
lock table m.t
lock table m.v
select nextval('m.s')
select setval('m.s', 5)
create table m.n (x int)
create table m.f (x int references m.t (id))
create view m.n as select 1
create view m.n as select * from m.t
create sequence m.n
create schema n
create schema n authorization m_owner
create index on m.t (a)
create role n
create role n superuser
create role n in role m_group
alter table m.t add column c int
alter table m.t drop column b
alter table m.t alter column a set default 5
alter table m.t rename to n
alter table m.t rename column a to n
alter view m.v rename to n
alter sequence m.s rename to n
alter sequence m.s restart
alter table m.t owner to m_stranger
alter table m.t owner to m_group
alter view m.v owner to m_stranger
alter sequence m.s owner to m_group
alter schema m rename to n
alter schema m owner to m_owner
alter role m_stranger rename to n
alter role m_group rename to n
alter role m_stranger createdb
alter role m_stranger password 'x'
alter role postgres nologin
drop table m.t cascade
drop view m.v
drop materialized view m.mv
drop sequence m.s
drop schema m
drop role m_stranger
drop owned by m_owner
reassign owned by m_owner to m_group
refresh materialized view m.mv
reindex table m.t
cluster m.t using t_pkey
analyze m.t
grant select on m.t to m_stranger
grant select on m.t to public
grant select (a) on m.t to m_stranger
grant select on m.t to m_stranger with grant option
revoke select on m.t from m_group
revoke all on m.t from m_granted
grant usage on schema m to m_stranger
grant usage on sequence m.s to m_stranger
grant m_group to m_stranger
revoke m_group from m_member
grant m_owner to m_group
grant m_member to m_group
grant postgres to m_stranger
grant pg_read_all_data to m_stranger
alter default privileges grant select on tables to m_stranger
alter default privileges for role m_owner grant select on tables to m_stranger
set local role m_group
set local role postgres
set local role m_nobody
set session authorization postgres
select set_config('role', 'postgres', true)
select has_table_privilege('m.t', 'select')
select has_table_privilege('m.t', 'delete')
select has_database_privilege('postgres', 'create')
select has_database_privilege('postgres', 'connect')
select pg_has_role('m_group', 'member')
select pg_has_role('m_group', 'usage')
select pg_has_role('m_stranger', 'usage')
select pg_cancel_backend(0)
select id from m.p
select id from m.p where n > 0
select id from m.p for update
select count(*) from m.pv
insert into m.p values (5, 'm_member', 5)
insert into m.p values (5, 'm_member', 55)
insert into m.p values (5, 'm_granted', 45) returning id
insert into m.p values (1, 'm_member', 5) on conflict (id) do nothing
insert into m.p values (1, 'm_member', 5) on conflict (id) do update set n = 6
insert into m.p values (2, 'm_member', 5) on conflict (id) do update set n = 60
insert into m.pv values (5, 'm_member', 5)
update m.p set n = 5
update m.p set n = n + 1 returning id
update m.p set n = 60
update m.p set who = 'm_owner'
update m.pv set n = 7
delete from m.p
delete from m.p where id < 10
delete from m.pv where id < 10
truncate m.p
copy m.p to stdout
declare c cursor for select * from m.p
create temporary table q as select * from m.p
select m.f(1)
select m.kept(1)
select m.f(a) from m.t
select f from m.fv
select m.reads()
select m.owners()
select m.who()
call m.adds(9)
select has_function_privilege('m.f(int)', 'execute')
select has_function_privilege('m.f(int)', 'execute with grant option')
create function m.made() returns int language sql as 'select 1'
create or replace function m.f(int) returns int language sql as 'select $1 + 2'
alter function m.f(int) immutable
alter function m.f(int) owner to m_group
alter function m.reads() rename to n
alter function m.f(int) leakproof
comment on function m.f(int) is 'x'
drop function m.reads()
drop procedure m.adds(int)
grant execute on function m.f(int) to m_stranger
grant execute on all functions in schema m to m_stranger
revoke execute on function m.f(int) from m_group
alter default privileges for role m_owner revoke execute on functions from public
select row_security_active('m.p')
select row_security_active('m.t')
create policy q on m.p using (true)
alter policy p_own on m.p using (true)
alter policy p_own on m.p rename to q
drop policy p_own on m.p
alter table m.p disable row level security
alter table m.p force row level security
alter table m.p no force row level security
set local row_security = off; select count(*) from m.p
alter role m_stranger set lock_timeout = 5
alter role m_stranger in database postgres set lock_timeout = 5
alter role m_stranger set log_statement = 'all'
alter role m_stranger reset all
alter role m_owner set lock_timeout = 5
alter role postgres set lock_timeout = 5
alter role all set lock_timeout = 5
alter role all in database postgres set lock_timeout = 5
alter role pg_monitor set lock_timeout = 5
alter database postgres set lock_timeout = 5
alter database postgres reset all
alter role m_stranger replication
alter role m_copier nologin
alter role m_stranger bypassrls
create role m_new replication
create role m_new bypassrls
create role m_new in role m_group
comment on table m.t is 'x'
comment on column m.t.a is 'x'
comment on role m_stranger is 'x'
comment on database postgres is 'x'
declare c cursor for select b from m.t
create table m.like_t (like m.t)
create type m.kind as enum ('a')
create domain m.positive as int check (value > 0)
create temporary table q (a int)
create temporary sequence q
create view m.w as select * from m.t
create materialized view m.w as select a from m.t
create index on m.t (a)
create unique index concurrently i on m.t (a)
alter table m.t add constraint c check (a > 0)
alter table m.t alter a set default 7
alter table m.t alter a type bigint
alter table m.t add d int generated always as (a + 1) stored
alter table m.t set schema m_closed
alter sequence m.s restart
alter table m.other add foreign key (id) references m.t
select nextval('m.s')
select currval('m.s')
select setval('m.s', 5)
select last_value from m.s
copy m.t to stdout
copy m.t (a) to stdout
copy (select b from m.t) to stdout
explain (costs off) select * from m.t
explain (costs off) delete from m.t
listen x
notify x
set constraints all deferred
checkpoint
set local log_statement = 'all'
select set_config('log_statement', 'all', true)
show log_statement
select rolpassword from pg_authid limit 1
select passwd from pg_shadow limit 1
select a into m.n from m.t
select a into temporary q from m.t
select b into temporary q from m.t
create type m.n as (a int)
create type m.n as (a m.c1)
create type m.n as (a m.e1)
create domain m.n as m.e1
create table m.n (a m.e1)
create table m.n (a m.c1)
alter table m.t add c m.e1
alter type m.c1 add attribute c int
alter type m.c1 add attribute c m.e1
alter type m.c1 drop attribute b
alter type m.c1 alter attribute a type bigint
alter type m.c1 rename attribute a to z
alter type m.c1 rename to n
alter type m.c1 owner to m_group
alter type m.c1 owner to m_stranger
alter type m.c1 set schema m_closed
alter type m.e1 add value 'c'
alter type m.e1 rename value 'a' to 'z'
alter domain m.d1 set default 5
alter domain m.d1 add check (value > 0)
alter domain m.d1 owner to m_group
drop type m.c1
drop type m.e1
drop domain m.d1
grant usage on type m.c1 to m_stranger
revoke usage on type m.e1 from m_group
select ('(1,x)'::m.c1).a
select 'a'::m.e1
select has_type_privilege('m.e1', 'usage')
alter group m_group add user m_stranger
alter group m_group drop user m_member
alter group m_group rename to n
create group n
create user n
drop group m_group
drop user m_stranger
comment on view m.v is 'x'
comment on materialized view m.mv is 'x'
comment on sequence m.s is 'x'
comment on schema m is 'x'
comment on index m.t_pkey is 'x'
comment on constraint t_pkey on m.t is 'x'
comment on policy p_own on m.p is 'x'
alter view m.v set (security_barrier)
alter view m.v reset (security_barrier)
alter view m.v rename column a to z
alter view m.v alter a set default 5
alter view m.v set schema m_closed
create or replace view m.v as select a, b from m.t
create or replace view m.v as select a, b from m.t where false
alter materialized view m.mv rename to n
alter materialized view m.mv rename column a to z
alter table m.t rename constraint t_pkey to z
alter table m.t cluster on t_pkey
alter table m.t alter a set statistics 5
alter table m.t set (fillfactor = 50)
alter table m.t set unlogged
alter index m.t_pkey rename to z
alter sequence m.s owned by none
alter sequence m.s owned by m.t.id
create sequence m.n owned by m.t.id
create temporary sequence q owned by m.t.id
create rule r as on insert to m.t do instead nothing
drop index m.t_pkey
reindex index m.t_pkey
refresh materialized view m.mv with no data
truncate m.t restart identity
truncate m.t, m.other
lock table m.t in exclusive mode nowait
lock table m.bv in row exclusive mode
select id from m.bv where 1 / (id - 5) < 9
update m.bv set a = 8 where id = 1
insert into m.bv values (8, 8)
delete from m.bv where a = 2 returning id
explain (analyze, costs off, timing off, summary off) update m.t set b = 1
copy (delete from m.t returning id) to stdout
copy (update m.t set a = 1 returning b) to stdout
prepare q as select b from m.t; deallocate q
prepare q (int) as update m.t set b = $1; deallocate q
create temporary view q as select b from m.t
declare c cursor with hold for select id from m.t
with w as (insert into m.t (id) values (7) returning id) select * from w
with w as (delete from m.t) select 1
insert into m.t select * from m.t where false
insert into m.t (id) select x from generate_series(50, 51) x returning a
update m.t x set a = x.id from m.t y where y.b = x.b
select pg_sequence_last_value('m.s')
select last_value from pg_sequences where schemaname = 'm'
alter default privileges in schema m grant select on tables to m_stranger
alter default privileges for role m_group revoke all on tables from public
alter database postgres rename to n
alter database postgres owner to m_owner
alter schema m owner to m_group
set session authorization m_owner
set session authorization default
set local session_replication_role = 'replica'
select set_config('session_authorization', 'm_owner', true)
select pg_terminate_backend(0)
select count(*) from pg_stat_activity where query <> '<insufficient privilege>' and usename = 'postgres' and pid <> pg_backend_pid()
""".strip().splitlines()


# What differs, and why.
EXPLAINED = {
    # A column that a view reads can be dropped: no dependency is kept by column.
    ("m_owner", "alter table m.t drop column b"),
    # A role that was dropped has no rights at all, not even those of everybody.
    ("dropped", "grant usage on schema m to m_stranger"),
    ("dropped", "select has_database_privilege('postgres', 'connect')"),
    ("dropped", "select m.kept(1)"),
    ("dropped", "select m.owners()"),
    ("dropped", "select m.who()"),
    ("dropped", "analyze m.t"),
    ("dropped", "create temporary table q (a int)"),
    ("dropped", "create temporary sequence q"),
    ("dropped", "grant usage on type m.c1 to m_stranger"),
    ("dropped", "create temporary view q as select b from m.t"),
    ("dropped", "create temporary sequence q owned by m.t.id"),
    # Verifiers of passwords are for superusers alone.
    ("m_reader", "select rolpassword from pg_authid limit 1"),
    ("m_reader", "select passwd from pg_shadow limit 1"),
}


class Server:
    """One connection, simple queries only."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        body = struct.pack(">I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(struct.pack(">I", len(body) + 4) + body)
        self.reader = self.socket.makefile("rb")
        self.answer()

    def answer(self):
        """SQLSTATE of the first error, or the rows."""
        code, rows = None, []
        while True:
            tag, length = self.reader.read(1), struct.unpack(">I", self.reader.read(4))[0]
            body = self.reader.read(length - 4)
            if tag == b"E" and code is None:
                fields = dict((f[:1], f[1:].decode()) for f in body.split(b"\0") if f)
                code = fields[b"C"]
                self.message = fields[b"M"]
            elif tag == b"D":
                rows.append(body)
            elif tag == b"Z":
                return code or ("ok", rows)

    def run(self, sql):
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)
        return self.answer()

    def must(self, sql):
        answer = self.run(sql)
        if isinstance(answer, str):
            sys.exit(f"{sql}: {answer} {self.message}")


def prepare(server):
    for sql in SETUP.split(";"):
        server.must(sql)
    server.must("create role m_before; grant select on m.other to m_before")
    server.must("alter role m_before rename to m_renamed")


def shown(answer):
    return answer if isinstance(answer, str) else f"ok, {len(answer[1])} rows {answer[1][:1]}"


def main():
    servers = [Server(int(port)) for port in sys.argv[1:3]]
    for server in servers:
        prepare(server)
    passed = failed = 0
    for role in ROLES:
        if role == "dropped":
            for server in servers:
                server.must("set session authorization m_dropped")
            others = [Server(int(port)) for port in sys.argv[1:3]]
            for other in others:
                other.must("drop owned by m_dropped; drop role m_dropped")
        else:
            for server in servers:
                server.must(f"set session authorization {role}")
        for sql in STATEMENTS:
            answers = []
            for server in servers:
                server.must("begin")
                answers.append(server.run(sql))
                server.must("rollback")
            if answers[0] == answers[1] or (role, sql) in EXPLAINED:
                passed += 1
            else:
                failed += 1
                print(f"{role}: {sql}: {shown(answers[0])}; PostgreSQL: {shown(answers[1])}")
        for server in servers:
            server.must("reset session authorization")
    for server in servers:
        for sql in CLEAN.split(";"):
            server.must(sql)
    print(f"{passed} passed, {failed} failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
