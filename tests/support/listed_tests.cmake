# What ctest does before it begins: `PROGRAM --list` says which tests a program is, a line for each: its name, and with what
# else its short run is called. So the program has the only list.
execute_process(COMMAND ${program} --list OUTPUT_VARIABLE lines RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0) # not built: a test that fails, and says so
    set(lines "--list")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${lines}")
foreach(line ${lines})
    separate_arguments(words UNIX_COMMAND "${line}")
    list(GET words 0 name)
    add_test(${kind}.${name} ${program} ${words})
    set_tests_properties(${kind}.${name} PROPERTIES LABELS ${kind} ${properties})
    if(name STREQUAL "${longest}")
        set_tests_properties(${kind}.${name} PROPERTIES COST 40)
    endif()
endforeach()
