-- The tables of TPC-C that new orders and payments change, for W warehouses (:w).
create table warehouse (w_id int primary key, w_ytd numeric(12,2) not null, w_name text not null);
create table district (d_w_id int, d_id int, d_next_o_id int not null, d_ytd numeric(12,2) not null, primary key (d_w_id, d_id));
create table customer (c_w_id int, c_d_id int, c_id int, c_last text not null, c_balance numeric(12,2) not null, c_data text not null,
    primary key (c_w_id, c_d_id, c_id));
create index on customer (c_w_id, c_d_id, c_last);
create table item (i_id int primary key, i_price numeric(5,2) not null, i_data text not null);
create table stock (s_w_id int, s_i_id int, s_quantity int not null, s_ytd int not null, s_order_cnt int not null, s_data text not null,
    primary key (s_w_id, s_i_id));
create table orders (o_w_id int, o_d_id int, o_id int, o_c_id int not null, o_entry_d timestamp not null, o_ol_cnt int not null,
    primary key (o_w_id, o_d_id, o_id));
create index on orders (o_w_id, o_d_id, o_c_id, o_id);
create table order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int not null, ol_quantity int not null,
    ol_amount numeric(6,2) not null, ol_dist_info text not null, primary key (ol_w_id, ol_d_id, ol_o_id, ol_number));
create table history (h_c_w_id int, h_c_d_id int, h_c_id int, h_date timestamp not null, h_amount numeric(6,2) not null, h_data text not null);
insert into warehouse select w, 0, 'W' || w from generate_series(1, :w) w;
insert into district select w, d, 1, 0 from generate_series(1, :w) w, generate_series(1, 10) d;
insert into customer select w, d, c, 'LAST' || c % 1000, -10, repeat('c', 400)
    from generate_series(1, :w) w, generate_series(1, 10) d, generate_series(1, 3000) c;
insert into item select i, i % 100 + 0.5, repeat('i', 40) from generate_series(1, 100000) i;
insert into stock select w, i, 50, 0, 0, repeat('s', 250) from generate_series(1, :w) w, generate_series(1, 100000) i;
