# The libraries that the page carries, from Debian's sources in build/page/sources (sim/flopcast/page/build): those that a simulation needs.
# -ffp-contract=off as in all of flopcast. GSL and argp are compiled by the lists in their makefiles, without their configure
# scripts, which take longer than the compilation and ask a machine that wasm is not.
set(sources ${PROJECT_BINARY_DIR}/sources)
file(GLOB gsl LIST_DIRECTORIES true ${sources}/gsl-*)
file(GLOB yaml LIST_DIRECTORIES true ${sources}/libyaml-*)
file(GLOB csv LIST_DIRECTORIES true ${sources}/libcsv-*)
file(GLOB gnulib LIST_DIRECTORIES true ${sources}/gnulib-*)
if(NOT gsl OR NOT yaml OR NOT csv OR NOT gnulib)
  message(FATAL_ERROR "The sources of the libraries are missing: start sim/flopcast/page/build, which fetches them")
endif()
set(generated ${PROJECT_BINARY_DIR}/generated)

function(add_carried name)
  add_library(page_${name} STATIC ${ARGN})
  target_compile_options(page_${name} PRIVATE -ffp-contract=off -w)
endfunction()

# GSL: some files, and of these folders all that their makefiles call libgslNAME_la_SOURCES.
set(gsl_sources cdf/gauss.c cdf/gaussinv.c randist/exponential.c randist/gauss.c randist/gausszig.c randist/shuffle.c linalg/cholesky.c
  linalg/condest.c linalg/invtri.c linalg/trimult.c)
list(TRANSFORM gsl_sources PREPEND ${gsl}/)
foreach(folder err sort statistics vector matrix block blas cblas)
  file(READ ${gsl}/${folder}/Makefile.am makefile)
  string(REPLACE "\\\n" " " makefile "${makefile}")
  string(REGEX MATCH "libgsl[a-z_]*_la_SOURCES *=([^\n]*)" _ "${makefile}")
  string(REGEX MATCHALL "[A-Za-z0-9_]+\\.c" files "${CMAKE_MATCH_1}")
  list(TRANSFORM files PREPEND ${gsl}/${folder}/)
  list(APPEND gsl_sources ${files})
endforeach()
file(GLOB headers ${gsl}/gsl_*.h ${gsl}/*/gsl_*.h)
file(COPY ${headers} DESTINATION ${generated}/gsl)
file(CONFIGURE OUTPUT ${generated}/gsl_config/config.h CONTENT [[
#define VERSION "2.7.1"
#define PACKAGE "gsl"
#define HAVE_INLINE 1
#define HAVE_C99_INLINE 1
#define HAVE_DECL_ACOSH 1
#define HAVE_DECL_ASINH 1
#define HAVE_DECL_ATANH 1
#define HAVE_DECL_EXPM1 1
#define HAVE_DECL_FINITE 1
#define HAVE_DECL_FREXP 1
#define HAVE_DECL_HYPOT 1
#define HAVE_DECL_ISFINITE 1
#define HAVE_DECL_ISINF 1
#define HAVE_DECL_ISNAN 1
#define HAVE_DECL_LDEXP 1
#define HAVE_DECL_LOG1P 1
#define HAVE_EXIT_SUCCESS_AND_FAILURE 1
#define HAVE_STRDUP 1
#define HAVE_STRTOL 1
#define HAVE_STRTOUL 1
#define HAVE_VPRINTF 1
#define HAVE_PRINTF_LONGDOUBLE 1
#define HAVE_COMPLEX_H 1
#define GSL_COERCE_DBL(x) (x)
#define GSL_RANGE_CHECK 0
#define GSL_DISABLE_DEPRECATED 1
#define DISCARD_POINTER(p) do { ; } while(p ? 0 : 0);
#define RETURN_IF_NULL(x) if (!x) { return; }
]] @ONLY)
add_carried(gsl ${gsl_sources})
target_include_directories(page_gsl PRIVATE ${generated}/gsl_config ${gsl} PUBLIC ${generated})
target_compile_definitions(page_gsl PRIVATE HAVE_CONFIG_H)

file(GLOB files ${yaml}/src/*.c)
add_carried(yaml ${files})
target_include_directories(page_yaml PUBLIC ${yaml}/include)
target_compile_definitions(page_yaml PRIVATE YAML_VERSION_MAJOR=0 YAML_VERSION_MINOR=2 YAML_VERSION_PATCH=5
  YAML_VERSION_STRING="0.2.5" PUBLIC YAML_DECLARE_STATIC)

add_carried(csv ${csv}/libcsv.c)
target_include_directories(page_csv PUBLIC ${csv})

# argp, which glibc has and emscripten's C library has not. Its getopt.h is a template.
file(GLOB files ${gnulib}/lib/argp-*.c)
list(FILTER files EXCLUDE REGEX "version-etc|argp-pvh") # which program.c of options says
file(READ ${gnulib}/lib/argp.h header)
file(CONFIGURE OUTPUT ${generated}/argp/argp.h CONTENT "#include \"argp_config.h\"\n@header@" @ONLY)
configure_file(sim/flopcast/page/argp_config.h ${generated}/argp/argp_config.h COPYONLY)
file(WRITE ${generated}/getopt/config.h "#include \"argp_config.h\"\n")
file(WRITE ${generated}/getopt/gettext.h "#define gettext(text) (text)\n#define dgettext(domain, text) (text)\n")
set(GUARD_PREFIX GL)
set(HAVE_GETOPT_H 0)
set(HAVE_SYS_CDEFS_H 0)
configure_file(${gnulib}/lib/getopt.in.h ${generated}/getopt/getopt.h @ONLY)
configure_file(${gnulib}/lib/getopt-cdefs.in.h ${generated}/getopt/getopt-cdefs.h @ONLY)
add_carried(argp ${files} ${gnulib}/lib/getopt.c ${gnulib}/lib/getopt1.c)
target_include_directories(page_argp SYSTEM PRIVATE ${generated}/getopt ${gnulib}/lib PUBLIC ${generated}/argp)
target_compile_definitions(page_argp PRIVATE _GNU_SOURCE HAVE_CONFIG_H __GETOPT_PREFIX=page_)

# Left out: what needs a database, other tools' logs and traces. Modules that are compiled see the headers alone.
set(page_left_out report library)
foreach(header sqlite3.h zlib.h zconf.h)
  file(COPY /usr/include/${header} DESTINATION ${generated}/left_out)
endforeach()
foreach(library SQLITE YAJL ZLIB EXPAT PROTOBUF_C)
  add_library(PkgConfig::${library} INTERFACE IMPORTED)
  target_include_directories(PkgConfig::${library} INTERFACE ${generated}/left_out)
endforeach()
add_library(PkgConfig::GSL ALIAS page_gsl)
add_library(PkgConfig::YAML ALIAS page_yaml)
set(CSV_LIBRARY page_csv)
