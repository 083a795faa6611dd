\set w random(1, :scale)
\set d random(1, 10)
\set c random(1, 3000)
\set i1 random(1, 25000)
\set i2 random(25001, 50000)
\set i3 random(50001, 75000)
\set i4 random(75001, 100000)
begin;
select c_last from customer where c_w_id = :w and c_d_id = :d and c_id = :c;
update district set d_next_o_id = d_next_o_id + 1 where d_w_id = :w and d_id = :d returning d_next_o_id - 1 as o \gset
insert into orders values (:w, :d, :o, :c, now(), 4);
update stock set s_quantity = s_quantity - 1, s_ytd = s_ytd + 1, s_order_cnt = s_order_cnt + 1 where s_w_id = :w and s_i_id = :i1;
insert into order_line values (:w, :d, :o, 1, :i1, 1, 1.5, 'abcdefghijklmnopqrstuvwx');
update stock set s_quantity = s_quantity - 2, s_ytd = s_ytd + 2, s_order_cnt = s_order_cnt + 1 where s_w_id = :w and s_i_id = :i2;
insert into order_line values (:w, :d, :o, 2, :i2, 2, 3.0, 'abcdefghijklmnopqrstuvwx');
update stock set s_quantity = s_quantity - 3, s_ytd = s_ytd + 3, s_order_cnt = s_order_cnt + 1 where s_w_id = :w and s_i_id = :i3;
insert into order_line values (:w, :d, :o, 3, :i3, 3, 4.5, 'abcdefghijklmnopqrstuvwx');
update stock set s_quantity = s_quantity - 4, s_ytd = s_ytd + 4, s_order_cnt = s_order_cnt + 1 where s_w_id = :w and s_i_id = :i4;
insert into order_line values (:w, :d, :o, 4, :i4, 4, 6.0, 'abcdefghijklmnopqrstuvwx');
commit;
