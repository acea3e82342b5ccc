/* What configure would find in emscripten's C library, for gnulib's argp and getopt
 * (libraries.cmake). */
#include <stdalign.h>
#include <stdbool.h>
#define _GL_INLINE inline
#define _GL_EXTERN_INLINE extern inline
#define _GL_INLINE_HEADER_BEGIN
#define _GL_INLINE_HEADER_END
#define _GL_UNUSED __attribute__((unused))
#define _GL_ATTRIBUTE_FORMAT(x) __attribute__((format x))
#define _GL_ATTRIBUTE_SPEC_PRINTF_SYSTEM __printf__
#define _GL_ATTRIBUTE_SPEC_PRINTF_STANDARD __printf__
#define _GL_ATTRIBUTE_MALLOC
#define _GL_ATTRIBUTE_DEALLOC(f, i)
#define _GL_ARG_NONNULL(x)
#define __THROW
#define __nonnull(x)
#define HAVE_DECL_PROGRAM_INVOCATION_NAME 1
#define HAVE_DECL_PROGRAM_INVOCATION_SHORT_NAME 1
#define GNULIB_ARGP_DISABLE_DIRNAME 1
#define HAVE_STRERROR 1
