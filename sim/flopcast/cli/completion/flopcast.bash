# Completion of flopcast in bash: the program itself says what a word may become (sim/answers/options/describe.h).
_flopcast() {
    local line=${COMP_LINE:0:COMP_POINT} word before
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # Readline takes the part behind the last = or : of a word for the word.
    word=${words[${#words[@]} - 1]}
    before=${word%"${word##*[=:]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$before"}")
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
complete -o default -F _flopcast flopcast
