/* What `peerway cc --openacc-backend` generates calls to: acc directives are an OpenACC compiler's, whose own
 * run time says where the device has a copy. A program does not include this itself. */
#ifndef PEERWAY_XACC_OUTSIDE_H
#define PEERWAY_XACC_OUTSIDE_H

#include "acc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of a distributed array as one piece. */
PWX_API void* pwx_memory(const pwx_array* a);
PWX_API size_t pwx_memory_bytes(const pwx_array* a);

/* `pointer`, which leads into the memory of `a` or is shifted to before it, for the copy at `device`; itself
 * where there is none. */
static inline void* pwx_moved(const pwx_array* a, const void* pointer, void* device) {
  char* const memory = (char*)pwx_memory(a);
  return device ? (char*)device + ((const char*)pointer - memory) : (void*)pointer;
}

/* Makes the copy known that the OpenACC run time has at `device`, so that a directive of xmp with acc reaches
 * it: gives PWX_REFLECT_ACC, or 0 where host and device share their memory. NULL is an error: not present. */
PWX_API int pwx_outside(const pwx_array* a, void* device, const pwx_where* where);

#ifdef __cplusplus
}
#endif
#endif
