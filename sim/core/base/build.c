/* The identity of the program: build ids of the program and of libm and GSL, read from the ELF
 * notes in memory.
 *
 * dl_iterate_phdr() lists the loaded objects, the program first. Each has note segments; the one of
 * type NT_GNU_BUILD_ID holds the linker's hash of all that was linked. Only libraries that
 * calculate count: another libc gives the same results. */
#include "base/build.h"

#include "base/digest.h"
#include "base/status.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Padded with spaces. Volatile: what the compiler sees here is not what the program will read. The
 * name of the section is an identifier of C: ASan then puts nothing around what is in it. */
__attribute__((
    used, section("flopcast_commit"))) static const volatile char commit[BUILD_COMMIT_SIZE] =
    "unknown                                        ";

struct build {
    uint64_t digest;
    int objects; /* that were asked so far; the first is the program */
    bool program_known;
};

/* Notes are aligned to 4 bytes, name and content each. */
static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* The build id among the notes of a segment into the digest. */
static bool add_id(uint64_t *digest, const unsigned char *at, size_t left)
{
    ElfW(Nhdr) note;
    while (left >= sizeof note) {
        memcpy(&note, at, sizeof note);
        size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
        if (name > left - sizeof note || content > left - sizeof note - name)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
            memcmp(at + sizeof note, "GNU", sizeof "GNU") == 0) {
            for (size_t i = 0; i < note.n_descsz; i++)
                *digest = digest_word(*digest, at[sizeof note + name + i]);
            return true;
        }
        at += sizeof note + name + content;
        left -= sizeof note + name + content;
    }
    return false;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *self)
{
    struct build *build = self;
    bool program = build->objects++ == 0;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    (void)size;
    if (!program && strncmp(name, "libm.so", strlen("libm.so")) != 0 &&
        strncmp(name, "libgsl", strlen("libgsl")) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        /* the dynamic linker gives the place of a segment in memory as a number */
        const unsigned char *at =
            (const unsigned char *)(info->dlpi_addr + segment->p_vaddr); // NOLINT
        if (add_id(&build->digest, at, segment->p_memsz))
            build->program_known |= program;
    }
    return 0;
}

uint64_t build_digest(void)
{
    struct build build = {.digest = DIGEST_INIT};
    for (const char *c = FLOPCAST_VERSION; *c; c++)
        build.digest = digest_word(build.digest, (unsigned char)*c);
    dl_iterate_phdr(add_object, &build);
    BUG_IF(!build.program_known, "the program was linked without --build-id");
    return build.digest;
}

void build_commit(char text[BUILD_COMMIT_SIZE])
{
    int n = 0;
    while (n < BUILD_COMMIT_SIZE - 1 && commit[n] != ' ') {
        text[n] = commit[n];
        n++;
    }
    text[n] = '\0';
}
