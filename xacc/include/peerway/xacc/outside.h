/* The functions that code of `peerway cc --openacc-backend` calls. An OpenACC compiler handles the acc
 * directives, and its run-time library says where the device has a copy. Programs do not include this
 * header themselves. */
#ifndef PEERWAY_XACC_OUTSIDE_H
#define PEERWAY_XACC_OUTSIDE_H

#include "acc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of a distributed array as one contiguous piece. */
PWX_API void* pwx_memory(const pwx_array* a);
PWX_API size_t pwx_memory_bytes(const pwx_array* a);

/* Translates `pointer`, which points into the memory of `a` or is shifted to before it, to the copy at
 * `device`. Returns `pointer` itself if there is no copy. */
static inline void* pwx_moved(const pwx_array* a, const void* pointer, void* device) {
  char* const memory = (char*)pwx_memory(a);
  return device ? (char*)device + ((const char*)pointer - memory) : (void*)pointer;
}

/* Registers the copy that the OpenACC run-time library has at `device`, so that xmp directives with acc
 * reach it. Returns PWX_REFLECT_ACC, or 0 if host and device share their memory. NULL is an error: not
 * present. */
PWX_API int pwx_outside(const pwx_array* a, void* device, const pwx_where* where);

#ifdef __cplusplus
}
#endif
#endif
