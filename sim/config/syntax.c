#include "config/document.h"

#include <string.h>

/* libyaml's words (0.2.5), and ours. Where something was never closed, the place that helps is where it was opened. */
static const struct {
    const char *problem, *sentence;
    bool at_opening;
} sentences[] = {
    {"tab character", "tab used as indentation; use spaces", false},
    {"cannot start any token", "this character cannot start a value; put the text in quotes", false},
    {"mapping values are not allowed", "': ' is not allowed here; check the indentation, or put the text in quotes",
        false},
    {"could not find expected ':'", "no ':' after this key; check the indentation", true},
    {"did not find expected key", "a key was expected here; check the indentation and the quotes", false},
    {"did not find expected '-' indicator", "'- ' was expected here; check the indentation of the list", false},
    {"block sequence entries are not allowed", "a list item is not allowed here; start it on its own line", false},
    {"expected ',' or ']'", "the list that starts here is not closed; ',' or ']' was expected", true},
    {"expected ',' or '}'", "the mapping that starts here is not closed; ',' or '}' was expected", true},
    {"unexpected end of stream", "the text that starts here is not closed; a quote was expected", true},
    {"unexpected document indicator", "the text that starts here is not closed; a quote was expected", true},
    {"unknown escape character", "unknown escape after '\\'; in single quotes '\\' stands for itself", false},
    {"control characters", "control character in the text; only printable UTF-8 is allowed", false},
    {"Unicode character escape",
        "this escape is no character (a pair of surrogates is not read); write the character itself", false},
    {"invalid Unicode character", "the text is not valid UTF-8; save the file as UTF-8", false},
    {"UTF-8", "the text is not valid UTF-8; save the file as UTF-8", false},
    {"expected node content", "a value was expected here", false},
    {"expected <document start>", "text after the end of the document; check the indentation", false},
};

static bool starts_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

/* libyaml gives no line for what its reader refuses, only the byte. */
static struct source_pos place_of_byte(const char *name, const char *text, size_t byte)
{
    struct source_pos at = {name, 1, 1};
    for (size_t i = 0; i < byte; i++) {
        if (text[i] == '\n')
            at = (struct source_pos){name, at.line + 1, 1};
        else if (starts_character(text[i]))
            at.column++;
    }
    return at;
}

static struct source_pos place_of_mark(const char *name, yaml_mark_t mark)
{
    return (struct source_pos){name, (int)mark.line + 1, (int)mark.column + 1};
}

static bool is_tab(const char *text, size_t n, size_t character)
{
    for (size_t i = 0; i < n; i++)
        if (starts_character(text[i]) && character-- == 0)
            return text[i] == '\t';
    return false;
}

enum status config_syntax_error(
    const yaml_parser_t *parser, const char *name, const char *text, size_t n, struct diag *diag)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return diag_io(diag, (struct source_pos){.file = name}, "out of memory");
    bool by_reader = parser->error == YAML_READER_ERROR;
    struct source_pos at =
        by_reader ? place_of_byte(name, text, parser->problem_offset) : place_of_mark(name, parser->problem_mark);
    const char *problem = !by_reader && is_tab(text, n, parser->problem_mark.index) ? "tab character" : parser->problem;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (!strstr(problem, sentences[i].problem))
            continue;
        if (sentences[i].at_opening && parser->context)
            at = place_of_mark(name, parser->context_mark);
        return diag_input(diag, at, "%s", sentences[i].sentence);
    }
    return diag_input(diag, at, "%s", problem);
}
