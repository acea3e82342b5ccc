# Completion of flopcast in fish: the program itself says what a word may become (sim/answers/options/describe.h).
complete -c flopcast -a '(flopcast __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
