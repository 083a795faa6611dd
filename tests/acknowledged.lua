-- A load for sysbench that knows what was acknowledged: each transaction adds one to one of ten hot rows and writes down its thread and
-- number; when the commit has been answered, the number goes into the file ACK_DIR/THREAD.
sysbench.cmdline.options = { ack_dir = {"Directory of the files of acknowledged numbers"} }

function thread_init()
   connection = sysbench.sql.driver():connect()
   acknowledged = assert(io.open(sysbench.opt.ack_dir .. "/" .. sysbench.tid, "w"))
   acknowledged:setvbuf("no")
   number = tonumber(connection:query_row("SELECT count(*) FROM written WHERE thread = " .. sysbench.tid))
   acknowledged:write(number .. "\n")
end

function event()
   number = number + 1
   connection:query("BEGIN")
   connection:query("UPDATE hot SET n = n + 1 WHERE id = " .. sysbench.rand.uniform(1, 10))
   connection:query(string.format("INSERT INTO written (thread, number) VALUES (%d, %d)", sysbench.tid, number))
   connection:query("COMMIT")
   acknowledged:write(number .. "\n")
end
