/* Does what the CUDA driver and NVTX do: loads what their variables name and calls it. Then it uses NVTX as
 * its headers would, by the table that the library has filled in. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
static function core[16], core2[16];
static function* core_places[16];
static function* core2_places[16];

static int get_table(int module, function*** table, unsigned* size) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_places : core2_places;
  *size = 16;
  return 1;
}
static const struct {
  size_t size;
  int (*get)(int, function***, unsigned*);
} callbacks = {sizeof callbacks, get_table};
static const void* get_export_table(uint32_t id) { return id == 1 ? &callbacks : NULL; }

struct attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};

int main(void) {
  for (int i = 0; i < 16; ++i) core_places[i] = &core[i], core2_places[i] = &core2[i];
  const char *cuda = getenv("CUDA_INJECTION64_PATH"), *nvtx = getenv("NVTX_INJECTION64_PATH");
  if (cuda == NULL || nvtx == NULL) return 2;
  void* library = dlopen(cuda, RTLD_NOW);
  int (*begin)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
  if (begin() != 1) return 3;
  library = dlopen(nvtx, RTLD_NOW);
  int (*begin_nvtx)(const void* (*)(uint32_t)) =
      (int (*)(const void* (*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2");
  if (begin_nvtx(get_export_table) != 1) return 4;
  void* domain = ((void* (*)(const char*))core2[12])("library");
  const void* text = ((const void* (*)(void*, const char*))core2[10])(domain, "registered");
  const struct attributes by_handle = {3, sizeof by_handle, 0, 0, 0, 0, 0, 0, 3, text};
  const uint64_t all = ((uint64_t (*)(const char*))core[5])("all");
  for (int i = 0; i < 3; ++i) {
    if (((int (*)(const char*))core[9])("outer") != 0) return 5;
    ((int (*)(void*, const struct attributes*))core2[4])(domain, &by_handle);
    ((void (*)(const char*))core[2])("here");
    ((int (*)(void*))core2[5])(domain);
    ((int (*)(void))core[11])();
  }
  ((void (*)(uint64_t))core[7])(all);
  return ((int (*)(void))core[11])() < 0 ? 0 : 6; /* a pop of nothing */
}
