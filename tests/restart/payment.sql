\set w random(1, :scale)
\set d random(1, 10)
\set c random(1, 3000)
begin;
update warehouse set w_ytd = w_ytd + 10 where w_id = :w;
update district set d_ytd = d_ytd + 10 where d_w_id = :w and d_id = :d;
update customer set c_balance = c_balance - 10 where c_w_id = :w and c_d_id = :d and c_id = :c;
insert into history values (:w, :d, :c, now(), 10, 'payment of ten');
commit;
