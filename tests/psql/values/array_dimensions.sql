-- || of arrays of several dimensions.
select array[[1,2],[3,4]] || array[5,6], array[1,2] || array[[3,4]], array[[1,2]] || array[[3,4],[5,6]];
select array_cat(array[[1,2]], array[3,4]), '{}'::int[] || array[[1,2]], array[[1,2]] || '{}'::int[];
select array_dims('[2:3][1:2]={{1,2},{3,4}}'::int[] || array[5,6]), array_dims(array[0,0] || '[2:3][1:2]={{1,2},{3,4}}'::int[]);
select array[[[1]],[[2]]] || array[[3]];
select array[1,2] || array[[1]];
select array[[1,2]] || array[[1]];
select array[[[1]]] || array[1];
select array[[1]] || 2;
select 1 || array[[1]];
select array_append(array[[1]], 2);
select null::int[] || array[[1,2]];
select array[[[[[[[1]]]]]]];
select array[array[array[array[array[array[array[1]]]]]]]::int[];
select array_agg(a) from (values (array[[[[[[1]]]]]]), (array[[[[[[2]]]]]])) v(a);
select array_dims(array_agg(a)) from (values (array[[[[[1]]]]]), (array[[[[[2]]]]])) v(a);
select array(select array[[[[[[1]]]]]]);
