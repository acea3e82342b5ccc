# Manual pages out of the program's tables, compressed where gzip is, into OUT/man1 and OUT/man5: cmake -DPROGRAM=... -DOUT=... -P man.cmake
execute_process(COMMAND "${PROGRAM}" __man OUTPUT_VARIABLE pages COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" pages "${pages}")
string(TIMESTAMP today "%Y-%m-%d" UTC) # of SOURCE_DATE_EPOCH where that is set
find_program(GZIP gzip)
file(REMOVE_RECURSE "${OUT}/man1" "${OUT}/man5") # a command that is gone has no page
foreach(page IN LISTS pages)
  if(page)
    string(REGEX MATCH "[0-9]$" section "${page}")
    file(MAKE_DIRECTORY "${OUT}/man${section}")
    execute_process(COMMAND "${PROGRAM}" __man ${page} ${today}
      OUTPUT_FILE "${OUT}/man${section}/${page}" COMMAND_ERROR_IS_FATAL ANY)
    if(GZIP)
      execute_process(COMMAND "${GZIP}" -9n "${OUT}/man${section}/${page}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endif()
endforeach()
file(TOUCH "${OUT}/stamp")
