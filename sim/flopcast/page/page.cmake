# build/page/flopcast.html (sim/flopcast/page/build): the modules that answer `run`, `memory`, `capacity` and `tune`, by emscripten, and their
# files in one page. What is not linked in is not in it: sim/flopcast/page/left_out.js lists what then lacks.
foreach(module options cli)
  target_link_libraries(fc_${module} PRIVATE page_argp)
endforeach()
set(here ${PROJECT_SOURCE_DIR}/sim/flopcast/page)
add_executable(flopcast_page sim/flopcast/page/main.c)
target_link_libraries(flopcast_page PRIVATE fc_cli page_argp)
target_link_options(flopcast_page PRIVATE -O2 --js-library ${here}/left_out.js -sMODULARIZE=1 -sEXPORT_NAME=createFlopcast
  -sENVIRONMENT=web,worker,node -sINVOKE_RUN=0 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=8MB -sFORCE_FILESYSTEM=1
  -sEXPORTED_FUNCTIONS=_main,_fflush -sEXPORTED_RUNTIME_METHODS=callMain,FS,ENV,stackSave,stackRestore)
# Debian's emscripten asks node for JavaScript packages that lie where Debian's own node looks, and no other.
set_target_properties(flopcast_page PROPERTIES LINK_DEPENDS ${here}/left_out.js
  RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")

find_program(NODE NAMES node nodejs REQUIRED)
file(GLOB packed CONFIGURE_DEPENDS topologies/*.yaml topologies/*/*.yaml topologies/*/aliases.txt scenarios/*.yaml scenarios/*/*)
add_custom_target(commit COMMENT "The commit of the sources" BYPRODUCTS ${PROJECT_BINARY_DIR}/commit.txt VERBATIM
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${PROJECT_BINARY_DIR}/commit.txt -P ${PROJECT_SOURCE_DIR}/sim/core/base/commit.cmake)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/flopcast.html VERBATIM COMMENT "flopcast.html"
  COMMAND ${NODE} ${here}/pack.mjs ${PROJECT_BINARY_DIR}/flopcast.html ${PROJECT_BINARY_DIR}/commit.txt ${FLOPCAST_VERSION}
    ${PROJECT_BINARY_DIR}/flopcast_page.js ${PROJECT_BINARY_DIR}/flopcast_page.wasm ${PROJECT_SOURCE_DIR}
  DEPENDS flopcast_page commit ${PROJECT_BINARY_DIR}/commit.txt ${packed} ${here}/pack.mjs ${here}/page.html ${here}/page.css ${here}/page.js
    ${here}/worker.js)
add_custom_target(page ALL DEPENDS ${PROJECT_BINARY_DIR}/flopcast.html)
