# Turns core/scripts/*.lua into C data, each with its SHA-1, so that the scripts stay files that an editor
# can highlight and redis-cli can run. A line `-- include NAME` stands for NAME.lua.
function(hf_embed_lua target)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/scripts.c)
    file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/scripts/*.lua
         ${CMAKE_CURRENT_SOURCE_DIR}/core/scripts/*/*.lua)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/core/scripts
                -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_lua_now.cmake
        DEPENDS ${scripts} ${CMAKE_CURRENT_SOURCE_DIR}/core/protocol/scripts.h
                ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_lua_now.cmake
        COMMENT "embedding the scripts")
    target_sources(${target} PRIVATE ${out})
endfunction()
