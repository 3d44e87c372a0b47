// The limit that any path over NVLink or PCIe is held against: bare cudaMemcpyPeerAsync into the other GPU's
// memory, in a window, with one synchronisation. Rank 0 maps rank 1's target by CUDA IPC, once a case,
// outside the timed loop.
#include "gpu.h"

struct cuda_program : gpu_program {
  int ordinals[2] = {0, 0};
  void* far_target = nullptr;  // rank 0: rank 1's target
};

static cuda_program* self(program* base) {
  return static_cast<cuda_program*>(reinterpret_cast<gpu_program*>(base));
}

static const char* open_case(program* base, const bench_case* c) {
  cuda_program* p = self(base);
  if (c->how != PUT_WINDOW || !contiguous(c->form))
    return "bare copies are measured for put_bw of one run of bytes";
  const size_t bytes = extent(c->form);
  gpu_check(cudaMalloc(&base->source, bytes), "cudaMalloc");
  gpu_check(cudaMalloc(&base->target, bytes), "cudaMalloc");
  cudaIpcMemHandle_t mine{}, all[OOB_MOST_RANKS];
  gpu_check(cudaIpcGetMemHandle(&mine, base->target), "cudaIpcGetMemHandle");
  oob_all_gather(&p->ranks, &mine, sizeof mine, all);
  if (sends(base))
    gpu_check(cudaIpcOpenMemHandle(&p->far_target, all[other(base)], cudaIpcMemLazyEnablePeerAccess),
              "cudaIpcOpenMemHandle");
  return nullptr;
}

static void close_case(program* base, const bench_case*) {
  cuda_program* p = self(base);
  if (sends(base)) gpu_check(cudaIpcCloseMemHandle(p->far_target), "cudaIpcCloseMemHandle");
  wait_for_all(base);
  gpu_check(cudaFree(base->source), "cudaFree");
  gpu_check(cudaFree(base->target), "cudaFree");
}

static void repeat(program* base, const bench_case* c, long n, double* us) {
  cuda_program* p = self(base);
  for (long i = 0; sends(base) && i < n; ++i) {
    const double start = now_us();
    for (long w = 0; w < c->window; ++w)
      gpu_check(cudaMemcpyPeerAsync(p->far_target, p->ordinals[1], base->source, p->ordinals[0], c->bytes,
                                    p->device.stream),
                "cudaMemcpyPeerAsync");
    gpu_finish(p->device);
    us[i] = now_us() - start;
  }
  wait_for_all(base);
}

static const operations can = {open_case, close_case, repeat, gpu_program_copy, gpu_program_maximum, nullptr};

int main(int argc, char** argv) {
  static cuda_program p;
  gpu_program_open(&p, &can, argc, argv);
  const char* devices = option(argc, argv, "--devices", "0,1");
  const char* comma = strchr(devices, ',');
  if (p.base.ranks != 2 || !comma) die("bare copies are measured between two ranks with a GPU each");
  p.ordinals[0] = atoi(devices);
  p.ordinals[1] = atoi(comma + 1);
  int version = 0;
  gpu_check(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
  snprintf(p.library, sizeof p.library, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  measure_all(&p.base, argc, argv);
  wait_for_all(&p.base);
  return 0;
}
