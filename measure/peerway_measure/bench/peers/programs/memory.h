/* Memory of the host or of a CUDA GPU, for C programs that are compiled with no CUDA toolkit: the driver is
 * loaded at run time. Includes packing, by loops on the host and by the kernels of pack.cu on the GPU. */
#ifndef PEERS_MEMORY_H
#define PEERS_MEMORY_H

#include <dlfcn.h>

#include "faces.h"
#include "launch.h"

typedef struct memory {
  int cuda; /* else host */
  char device[128];
  int multiprocessors;
  void *context, *stream;
  void *copy_rows[4], *copy_faces[4]; /* kernels of 16, 8, 4 and 1 byte words; NULL without a cubin */
  int (*allocate)(uint64_t* address, size_t bytes);
  int (*release)(uint64_t address);
  int (*copy)(uint64_t to, uint64_t from, size_t bytes);
  int (*launch)(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                void* stream, void** arguments, void** extra);
  int (*finish)(void* stream);
  int (*finish_all)(void);
  int (*name_of)(int error, const char** name);
} memory;

static inline void memory_check(const memory* m, int error, const char* call) {
  const char* name = "unknown error";
  if (!error) return;
  if (m->name_of) m->name_of(error, &name);
  die("%s failed: %s (%d)", call, name, error);
}

static inline void* memory_symbol(void* library, const char* name) {
  void* entry = dlsym(library, name);
  if (!entry) die("libcuda.so.1 has no %s; a newer driver is needed", name);
  return entry;
}

/* A function pointer out of dlsym's object pointer, which ISO C has no cast for. */
#define MEMORY_LOAD(pointer, library, name)       \
  do {                                            \
    void* address = memory_symbol(library, name); \
    memcpy(&(pointer), &address, sizeof address); \
  } while (0)

static inline void memory_load_kernels(memory* m, void* driver, const char* cubin) {
  static const char* const rows[] = {"copy_rows_16", "copy_rows_8", "copy_rows_4", "copy_rows_1"};
  static const char* const faces[] = {"copy_faces_16", "copy_faces_8", "copy_faces_4", "copy_faces_1"};
  int (*load)(void** module, const char* file);
  int (*get)(void** kernel, void* module, const char* name);
  MEMORY_LOAD(load, driver, "cuModuleLoad");
  MEMORY_LOAD(get, driver, "cuModuleGetFunction");
  void* module;
  memory_check(m, load(&module, cubin), "cuModuleLoad of the pack kernels");
  for (int i = 0; i < 4; ++i) {
    memory_check(m, get(&m->copy_rows[i], module, rows[i]), "cuModuleGetFunction");
    memory_check(m, get(&m->copy_faces[i], module, faces[i]), "cuModuleGetFunction");
  }
}

static inline void memory_open_cuda(memory* m, int ordinal, const char* cubin) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver) die("no NVIDIA driver: %s", dlerror());
  int (*init)(unsigned), (*get)(int*, int), (*retain)(void**, int), (*current)(void*);
  int (*name)(char*, int, int), (*attribute)(int*, int, int), (*stream)(void**, unsigned);
  MEMORY_LOAD(init, driver, "cuInit");
  MEMORY_LOAD(get, driver, "cuDeviceGet");
  MEMORY_LOAD(retain, driver, "cuDevicePrimaryCtxRetain");
  MEMORY_LOAD(current, driver, "cuCtxSetCurrent");
  MEMORY_LOAD(name, driver, "cuDeviceGetName");
  MEMORY_LOAD(attribute, driver, "cuDeviceGetAttribute");
  MEMORY_LOAD(stream, driver, "cuStreamCreate");
  MEMORY_LOAD(m->allocate, driver, "cuMemAlloc_v2");
  MEMORY_LOAD(m->release, driver, "cuMemFree_v2");
  MEMORY_LOAD(m->copy, driver, "cuMemcpy");
  MEMORY_LOAD(m->launch, driver, "cuLaunchKernel");
  MEMORY_LOAD(m->finish, driver, "cuStreamSynchronize");
  MEMORY_LOAD(m->finish_all, driver, "cuCtxSynchronize");
  MEMORY_LOAD(m->name_of, driver, "cuGetErrorName");
  enum { MULTIPROCESSOR_COUNT = 16, NON_BLOCKING = 1 }; /* values of cuda.h */
  int device;
  memory_check(m, init(0), "cuInit");
  memory_check(m, get(&device, ordinal), "cuDeviceGet");
  memory_check(m, retain(&m->context, device), "cuDevicePrimaryCtxRetain");
  memory_check(m, current(m->context), "cuCtxSetCurrent");
  memory_check(m, name(m->device, sizeof m->device, device), "cuDeviceGetName");
  memory_check(m, attribute(&m->multiprocessors, MULTIPROCESSOR_COUNT, device), "cuDeviceGetAttribute");
  memory_check(m, stream(&m->stream, NON_BLOCKING), "cuStreamCreate");
  if (*cubin) memory_load_kernels(m, driver, cubin);
}

/* `devices` is "host", or the GPU ordinals of all ranks as "0,1,...". */
static inline void memory_open(memory* m, const char* devices, int rank, const char* cubin) {
  memset(m, 0, sizeof *m);
  strcpy(m->device, "host");
  if (!strcmp(devices, "host")) return;
  for (int i = 0; i < rank; ++i) {
    devices = strchr(devices, ',');
    if (!devices++) die("rank %d has no GPU in the list of devices", rank);
  }
  m->cuda = 1;
  memory_open_cuda(m, atoi(devices), cubin);
}

static inline void* memory_allocate(memory* m, size_t bytes) {
  uint64_t address = 0;
  void* host_memory = NULL;
  if (m->cuda) {
    memory_check(m, m->allocate(&address, bytes), "cuMemAlloc");
    return (void*)(uintptr_t)address;
  }
  if (posix_memalign(&host_memory, 4096, bytes)) die("no memory: %zu bytes could not be allocated", bytes);
  memset(host_memory, 0, bytes); /* pages are mapped now, not in the first timed sample */
  return host_memory;
}

static inline void memory_release(memory* m, void* address) {
  if (m->cuda)
    memory_check(m, m->release((uint64_t)(uintptr_t)address), "cuMemFree");
  else
    free(address);
}

/* To, from or within this memory; complete when it returns. */
static inline void memory_copy(memory* m, void* to, const void* from, size_t bytes) {
  if (!m->cuda) {
    memcpy(to, from, bytes);
    return;
  }
  memory_check(m, m->copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes), "cuMemcpy");
  memory_check(m, m->finish_all(), "cuCtxSynchronize");
}

static inline void copy_rows_on_host(unsigned char* to, size_t to_pitch, const unsigned char* from,
                                     size_t from_pitch, shape s) {
  if (s.block_bytes == 8) { /* a fixed size lets the compiler use a load and a store */
    for (size_t b = 0; b < s.blocks; ++b) memcpy(to + b * to_pitch, from + b * from_pitch, 8);
    return;
  }
  for (size_t b = 0; b < s.blocks; ++b) memcpy(to + b * to_pitch, from + b * from_pitch, s.block_bytes);
}

/* Between `packed` and the blocks of `array`; complete when it returns. */
static inline void memory_copy_rows(memory* m, void* packed, void* array, shape s, int unpack) {
  void *to = unpack ? array : packed, *from = unpack ? packed : array;
  if (!m->cuda) {
    size_t to_pitch = unpack ? s.pitch : s.block_bytes, from_pitch = unpack ? s.block_bytes : s.pitch;
    copy_rows_on_host((unsigned char*)to, to_pitch, (const unsigned char*)from, from_pitch, s);
    return;
  }
  row_launch l = launch_of(s, to, from, unpack, m->multiprocessors);
  void* kernel = m->copy_rows[l.word == 16 ? 0 : l.word == 8 ? 1 : l.word == 4 ? 2 : 3];
  void* arguments[] = {&to, &from, &l.rows, &l.words, &l.to_pitch, &l.from_pitch};
  memory_check(m,
               m->launch(kernel, l.blocks[0], l.blocks[1], 1, l.threads[0], l.threads[1], 1, 0, m->stream,
                         arguments, NULL),
               "the pack kernel");
  memory_check(m, m->finish(m->stream), "the pack kernel");
}

/* Rows of f between the array and its place in `packed`. */
static inline void copy_face_on_host(char* array, char* packed, const face* f, int unpack) {
  unsigned long long at[FACE_MOST_DIMS] = {0}, rows = 1;
  for (unsigned d = 0; d + 1 < f->dims; ++d) rows *= f->count[d];
  shape last = {1, f->block_bytes, f->block_bytes}; /* the innermost dimension */
  if (f->dims) last = (shape){f->count[f->dims - 1], f->block_bytes, f->stride[f->dims - 1]};
  for (unsigned long long row = 0; row < rows; ++row) {
    char *inside = array + f->offset, *outside = packed + f->packed + row * last.blocks * last.block_bytes;
    for (unsigned d = 0; d + 1 < f->dims; ++d) inside += at[d] * f->stride[d];
    copy_rows_on_host((unsigned char*)(unpack ? inside : outside), unpack ? last.pitch : last.block_bytes,
                      (const unsigned char*)(unpack ? outside : inside),
                      unpack ? last.block_bytes : last.pitch, last);
    for (int d = (int)f->dims - 2; d >= 0 && ++at[d] == f->count[d]; --d) at[d] = 0;
  }
}

/* Launches one kernel for all faces; complete when it returns. */
static inline void copy_faces_on_gpu(memory* m, void* array, void* packed, face_list* faces, int unpack) {
  enum { THREADS = 256, WAVES = 8 };
  size_t all = (size_t)(uintptr_t)array | (size_t)(uintptr_t)packed, most = 1;
  for (unsigned i = 0; i < faces->n; ++i) {
    const face* f = &faces->of[i];
    size_t bytes = f->block_bytes;
    all |= f->block_bytes | f->offset | f->packed;
    for (unsigned d = 0; d < f->dims; ++d) all |= f->stride[d], bytes *= f->count[d];
    most = bytes > most ? bytes : most;
  }
  int word = all % 16 == 0 ? 0 : all % 8 == 0 ? 1 : all % 4 == 0 ? 2 : 3;
  static const size_t bytes_of[] = {16, 8, 4, 1};
  size_t wanted = (most / bytes_of[word] + THREADS - 1) / THREADS;
  size_t room = (size_t)m->multiprocessors * WAVES / faces->n + 1;
  void* arguments[] = {&array, &packed, faces, &unpack};
  memory_check(m,
               m->launch(m->copy_faces[word], (unsigned)(wanted < room ? wanted : room), faces->n, 1, THREADS,
                         1, 1, 0, m->stream, arguments, NULL),
               "the pack kernel");
  memory_check(m, m->finish(m->stream), "the pack kernel");
}

/* Between all faces of `array` and their places in `packed`; complete when it returns. */
static inline void memory_copy_faces(memory* m, void* array, void* packed, face_list* faces, int unpack) {
  if (m->cuda && faces->n) copy_faces_on_gpu(m, array, packed, faces, unpack);
  for (unsigned i = 0; !m->cuda && i < faces->n; ++i)
    copy_face_on_host((char*)array, (char*)packed, &faces->of[i], unpack);
}

#endif
