# Writes OUTPUT, a header that defines the digest of the sources named in LIST: it says whether two builds compute alike,
# whatever they were compiled for.
file(STRINGS ${LIST} files)
set(all "")
foreach(name IN LISTS files)
  file(SHA256 ${ROOT}/${name} digest)
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
set(header "#define EXTENSOR_SOURCE_DIGEST \"${digest}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL header)  # else what includes it would be compiled again
  file(WRITE ${OUTPUT} ${header})
endif()
