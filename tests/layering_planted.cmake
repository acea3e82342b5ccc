# cmake -D SCRATCH=<empty folder> -P layering_planted.cmake: layering.cmake passes a small sound tree, and reports each violation
# planted in it, at its place and in its words.
cmake_minimum_required(VERSION 3.25)
function(check expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layering.cmake
    RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_VARIABLE said)
  string(FIND "${said}" "${expected}" at)
  if(at EQUAL -1 OR (expected STREQUAL "" AND NOT status EQUAL 0) OR (NOT expected STREQUAL "" AND status EQUAL 0))
    message(FATAL_ERROR "layering.cmake: expected '${expected}', got status ${status}:\n${said}")
  endif()
endfunction()

macro(sound_tree)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/sim/layers.txt "# a comment\nwing core:\nbase:\nengine: base\nconfig: base\nwing answers: core\nstore: base engine\nwing lab: core\nfits: base\n")
  file(WRITE ${SCRATCH}/sim/core/base/base.h "#include <stdint.h>\n")
  file(WRITE ${SCRATCH}/sim/core/engine/engine.c "#include \"engine/engine.h\"\n\n#  include \"base/base.h\"\nint x;\n")
  file(WRITE ${SCRATCH}/sim/core/config/config.c "#include <yaml.h>\n#include <csv.h>\n#include \"base/base.h\"\n")
  file(WRITE ${SCRATCH}/sim/answers/store/store.c "#include <sqlite3.h>\n#include \"engine/engine.h\"\n#include \"base/base.h\"\n")
  file(WRITE ${SCRATCH}/sim/lab/fits/fits.c "#include \"base/base.h\"\n")
endmacro()

# Replace `file` of the sound tree by `text` and expect the sentence.
function(plant file text expected)
  sound_tree()
  file(WRITE ${SCRATCH}/${file} "${text}")
  check("${expected}")
endfunction()

sound_tree()
check("")
plant(sim/core/engine/engine.c "int x;\n #include \"store/store.h\"\n"
  "sim/core/engine/engine.c:2: error: engine may not use store; it may use: base")
plant(digests.txt "a\n" "digests.txt: error: nothing else stands at the top level")
plant(sim/core/base/base.h "#include \"engine/engine.h\"\n" "sim/core/base/base.h:1: error: base may not use engine")
plant(sim/core/engine/engine.c "#include <yaml.h>\n" "sim/core/engine/engine.c:1: error: engine may not use <yaml.h>; only config may")
plant(sim/core/config/config.c "\n\n#include <sqlite3.h>\n" "sim/core/config/config.c:3: error: config may not use <sqlite3.h>")
plant(sim/answers/store/store.c "#include <csv.h>\n" "sim/answers/store/store.c:1: error: store may not use <csv.h>; only config may")
plant(sim/core/engine/engine.c "#include \"engine.h\"\n" "sim/core/engine/engine.c:1: error: an include that names no module")
plant(sim/core/base/base.cu "#include \"store/store.h\"\n" "sim/core/base/base.cu:1: error: base may not use store")
plant(sim/core/gpu/gpu.c "#include \"base/base.h\"\n" "sim/core/gpu/gpu.c:1: error: gpu is no module")
plant(sim/layers.txt "wing core:\nbase: config\nconfig: base\nengine: base\nwing answers: core\nstore: engine base\n"
  "sim/layers.txt: error: base uses config, which is not on a line above it")
plant(sim/core/config/config.c "#include <yaml.h>\n" "sim/layers.txt: error: config includes nothing of base; strike base from its line")
plant(sim/layers.txt "wing core:\nbase:\nengine: base\n" "sim/core/config/config.c:1: error: config is no module")
plant(sim/layers.txt "wing core:\nbase:\nengine: base\nconfig: base\nwing answers: core\nstore: base engine\nwing lab: core\nfits: base store\n"
  "sim/layers.txt: error: fits uses store of wing answers; wing lab may use: lab core")
plant(sim/lab/fits/fits.c "#include \"store/store.h\"\n" "sim/lab/fits/fits.c:1: error: fits may not use store; it may use: base")
plant(sim/lab/engine/more.c "#include \"base/base.h\"\n"
  "sim/lab/engine/more.c:1: error: engine lies in wing lab, sim/layers.txt has it in core")
plant(sim/core/base/base.h "#include <zlib.h>\n" "sim/core/base/base.h:1: error: base may not use <zlib.h>; only reader, exchange, interop may")

sound_tree()
file(WRITE ${SCRATCH}/sim/core/base/a.c "static int add(int a)\n{\n    return a;\n}\n")
file(WRITE ${SCRATCH}/sim/core/engine/b.c "\nstatic const char *add(int a)\n{\n    return 0;\n}\n")
check("add() is a static function of")

string(REPEAT "\n" 750 lines)
sound_tree()
file(WRITE ${SCRATCH}/sim/core/base/base.c "${lines}")
check("")
plant(tests/base/test_long.c "${lines}\n" "tests/base/test_long.c:751: error: more than 750 lines")
file(REMOVE_RECURSE ${SCRATCH})
