// What modules that the page carries would ask of libraries and modules that it does not: databases (--db), traces (--trace)
// and the build id, by which a database knows a program. The command that asks for them ends, with their name.
const asked = `dl_iterate_phdr sqlite3_aggregate_context sqlite3_bind_double sqlite3_bind_int64 sqlite3_bind_null
  sqlite3_bind_parameter_count sqlite3_bind_parameter_name sqlite3_bind_text sqlite3_busy_timeout sqlite3_changes
  sqlite3_changes64 sqlite3_close sqlite3_column_count sqlite3_column_double sqlite3_column_int sqlite3_column_int64
  sqlite3_column_name sqlite3_column_text sqlite3_column_type sqlite3_create_function sqlite3_db_config
  sqlite3_db_readonly sqlite3_deserialize sqlite3_errcode sqlite3_errmsg sqlite3_exec sqlite3_extended_errcode
  sqlite3_extended_result_codes sqlite3_finalize sqlite3_free sqlite3_get_autocommit sqlite3_last_insert_rowid
  sqlite3_limit sqlite3_malloc64 sqlite3_mprintf sqlite3_open sqlite3_open_v2 sqlite3_prepare_v2
  sqlite3_progress_handler sqlite3_reset sqlite3_result_double sqlite3_result_error sqlite3_result_error_nomem
  sqlite3_result_int sqlite3_result_text sqlite3_serialize sqlite3_set_authorizer sqlite3_step sqlite3_stmt_readonly
  sqlite3_str_append sqlite3_str_appendall sqlite3_str_appendf sqlite3_str_finish sqlite3_str_length sqlite3_str_new
  sqlite3_user_data sqlite3_value_double sqlite3_value_int sqlite3_value_int64 sqlite3_value_text sqlite3_value_type
  trace_can_write trace_write`.split(/\s+/);
mergeInto(LibraryManager.library, Object.fromEntries(asked.map(name => [name, new Function(`abort('the page has no ${name}')`)])));
