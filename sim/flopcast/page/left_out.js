// What modules that the page carries would ask of libraries and modules that it does not: databases (--db), traces (--trace)
// and the build id, by which a database knows a program. The command that asks for them ends, with their name.
const asked = `dl_iterate_phdr sqlite3_aggregate_context sqlite3_bind_double sqlite3_bind_int64 sqlite3_bind_null
  sqlite3_bind_parameter_count sqlite3_bind_text sqlite3_busy_timeout sqlite3_close sqlite3_column_double sqlite3_column_int
  sqlite3_column_int64 sqlite3_column_text sqlite3_create_function sqlite3_db_readonly sqlite3_errmsg sqlite3_exec
  sqlite3_extended_errcode sqlite3_extended_result_codes sqlite3_finalize sqlite3_free sqlite3_get_autocommit
  sqlite3_last_insert_rowid sqlite3_open_v2 sqlite3_prepare_v2 sqlite3_reset sqlite3_result_double sqlite3_result_error_nomem
  sqlite3_result_text sqlite3_step sqlite3_str_appendall sqlite3_str_appendf sqlite3_str_finish sqlite3_str_length
  sqlite3_str_new sqlite3_user_data sqlite3_value_double sqlite3_value_int sqlite3_value_int64 sqlite3_value_type
  trace_can_write trace_write`.split(/\s+/);
mergeInto(LibraryManager.library, Object.fromEntries(asked.map(name => [name, new Function(`abort('the page has no ${name}')`)])));
