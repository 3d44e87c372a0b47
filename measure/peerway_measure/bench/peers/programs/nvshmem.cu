// What NVSHMEM does, measured: put with signal and wait in stream order ("nvshmem"), the same after a pack
// and before an unpack kernel ("nvshmem/pack"), and from inside a kernel ("nvshmem/kernel").
#include "gpu.h"
#include "nvshmem_kernels.cuh"

struct nvshmem_program : gpu_program {
  void* packed[2] = {nullptr, nullptr};
  uint64_t* signal = nullptr;
  uint64_t notified = 0;        // the signal's value once all that was sent has arrived
  uint64_t word = 0, seen = 0;  // signal_latency: what I send next, what I saw last
  bool fresh = true;            // no sample of this case yet
  bool packs = false, in_kernel = false, signals = false;
};

static nvshmem_program* self(program* base) {
  return static_cast<nvshmem_program*>(reinterpret_cast<gpu_program*>(base));
}

// ---- making a case ready -----------------------------------------------------------------------------

static void* allocate(size_t bytes) {
  void* address = nvshmem_malloc(bytes);
  if (!address) die("nvshmem_malloc of %zu bytes failed; a larger NVSHMEM_SYMMETRIC_SIZE is needed", bytes);
  return address;
}

static const char* open_case(program* base, const bench_case* c) {
  nvshmem_program* p = self(base);
  p->packs = !strcmp(c->via, "nvshmem/pack");
  p->in_kernel = !strcmp(c->via, "nvshmem/kernel");
  p->signals = !strcmp(c->test, "signal_latency");
  p->fresh = true;
  memset(&p->seen, POISON, sizeof p->seen);
  if (!contiguous(c->form) && !p->packs && !p->in_kernel)
    return "NVSHMEM has no block-strided put from the host";
  if (!contiguous(c->form) && c->how != PING_PONG) return "faces are measured there and back only";
  if (p->packs && c->how != PING_PONG) return "faces are measured there and back only";
  if (p->in_kernel && c->how == EXCHANGE) return "from inside a kernel, there and back is measured";
  if (p->signals && c->bytes != 8) return "a signal has 8 bytes";
  base->source = allocate(extent(c->form));
  base->target = allocate(extent(c->form));
  for (int i = 0; p->packs && i < 2; ++i) p->packed[i] = allocate(c->bytes);
  return nullptr;
}

static void close_case(program* base, const bench_case*) {
  nvshmem_program* p = self(base);
  wait_for_all(base);
  for (int i = 1; p->packs && i >= 0; --i) nvshmem_free(p->packed[i]);
  nvshmem_free(base->target);
  nvshmem_free(base->source);
}

// ---- in stream order ---------------------------------------------------------------------------------

static void put_on_stream(nvshmem_program* p, const bench_case* c) {
  cudaStream_t stream = p->device.stream;
  void *to = p->packs ? p->packed[1] : p->base.target, *from = p->packs ? p->packed[0] : p->base.source;
  if (p->packs) gpu_copy_rows(p->device, from, p->base.source, c->form, false);
  nvshmemx_putmem_signal_on_stream(to, from, c->bytes, p->signal, p->notified + 1, NVSHMEM_SIGNAL_SET,
                                   other(&p->base), stream);
}

static void wait_on_stream(nvshmem_program* p, const bench_case* c) {
  nvshmemx_signal_wait_until_on_stream(p->signal, NVSHMEM_CMP_GE, p->notified + 1, p->device.stream);
  if (p->packs) gpu_copy_rows(p->device, p->packed[1], p->base.target, c->form, true);
}

// The word itself is the message; it differs from the one before.
static void signal_on_stream(nvshmem_program* p, bool outgoing) {
  auto* word = static_cast<uint64_t*>(p->base.target);
  if (outgoing)
    nvshmemx_signal_op_on_stream(word, p->word++, NVSHMEM_SIGNAL_SET, other(&p->base), p->device.stream);
  else
    nvshmemx_signal_wait_until_on_stream(word, NVSHMEM_CMP_NE, p->seen++, p->device.stream);
}

static void one_way_on_stream(nvshmem_program* p, const bench_case* c, bool outgoing) {
  if (p->signals)
    signal_on_stream(p, outgoing);
  else
    outgoing ? put_on_stream(p, c) : wait_on_stream(p, c);
}

// There and back; or, as an exchange, both ways at once: each puts, then waits.
static void trips_on_stream(nvshmem_program* p, const bench_case* c, long n, long batch, double* us) {
  bool first = sends(&p->base), both = c->how == EXCHANGE;
  double trips = static_cast<double>(both ? batch : 2 * batch);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    for (long b = 0; b < batch; ++b, ++p->notified) {
      one_way_on_stream(p, c, first || both);
      one_way_on_stream(p, c, !first && !both);
    }
    gpu_finish(p->device);
    if (first) us[i] = (now_us() - start) / trips;
  }
}

static void windows_on_stream(nvshmem_program* p, const bench_case* c, long n, double* us) {
  bool first = sends(&p->base), gets = c->how == GET_EACH || c->how == GET_WINDOW;
  long batch = gpu_batch(c);
  if (!first && c->how != PUT_BOTH) return;
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    for (long m = 0; m < c->window * batch; ++m) {
      if (gets)
        nvshmemx_getmem_on_stream(p->base.target, p->base.source, c->bytes, other(&p->base),
                                  p->device.stream);
      else
        nvshmemx_putmem_on_stream(p->base.target, p->base.source, c->bytes, other(&p->base),
                                  p->device.stream);
    }
    nvshmemx_quiet_on_stream(p->device.stream);
    gpu_finish(p->device);
    if (first) us[i] = (now_us() - start) / static_cast<double>(batch);
  }
}

// ---- from inside a kernel ----------------------------------------------------------------------------

enum { MOST_BLOCKS = 64, MOST_THREADS = 1024, BYTES_A_BLOCK = 32768 };

static unsigned blocks_for(const bench_case* c) {
  size_t wanted = (c->bytes + BYTES_A_BLOCK - 1) / BYTES_A_BLOCK;
  return static_cast<unsigned>(wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS);
}

static unsigned threads_for(const bench_case* c) {
  size_t word = contiguous(c->form) ? 16 : 8;
  size_t wanted = (c->bytes / blocks_for(c) / word + 31) / 32 * 32;
  return static_cast<unsigned>(wanted < 32 ? 32 : wanted < MOST_THREADS ? wanted : MOST_THREADS);
}

// Cycles say how the samples differ, the events how long they took in all.
static void samples_from(const gpu& g, const long long* clocks, long n, double trips, double* us) {
  float total_ms = 0;
  gpu_check(cudaEventElapsedTime(&total_ms, g.start, g.end), "cudaEventElapsedTime");
  auto* cycles = static_cast<long long*>(host_bytes(static_cast<size_t>(n) * sizeof(long long)));
  gpu_copy(cycles, clocks, static_cast<size_t>(n) * sizeof(long long));
  double all = 0;
  for (long i = 0; i < n; ++i) all += static_cast<double>(cycles[i]);
  for (long i = 0; i < n; ++i) us[i] = static_cast<double>(cycles[i]) / all * total_ms * 1e3 / trips;
  free(cycles);
}

static void launch(nvshmem_program* p, const bench_case* c, long n, long long* clocks) {
  job j{static_cast<char*>(p->base.source),
        static_cast<char*>(p->base.target),
        p->signal,
        p->notified,
        c->form,
        other(&p->base),
        c->window};
  bool first = sends(&p->base), gets = c->how == GET_EACH || c->how == GET_WINDOW;
  unsigned blocks = blocks_for(c), threads = threads_for(c);
  cudaStream_t stream = p->device.stream;
  gpu_check(cudaEventRecord(p->device.start, stream), "cudaEventRecord");
  if (p->signals)
    signal_kernel<<<1, 1, 0, stream>>>(j, first, p->word, p->seen, n, clocks);
  else if (c->how == PING_PONG)
    ping_pong_kernel<<<blocks, threads, 0, stream>>>(j, first, n, clocks);
  else
    windows_kernel<<<blocks, threads, 0, stream>>>(j, gets, n, clocks);
  gpu_check(cudaGetLastError(), "the kernel's launch");
  gpu_check(cudaEventRecord(p->device.end, stream), "cudaEventRecord");
  gpu_finish(p->device);
  p->word += static_cast<uint64_t>(n);
  p->seen += static_cast<uint64_t>(n);
  if (!p->signals && c->how == PING_PONG) p->notified += static_cast<uint64_t>(n) * blocks;
}

static void repeat_in_kernel(nvshmem_program* p, const bench_case* c, long n, double* us) {
  if (!sends(&p->base) && c->how != PING_PONG && c->how != PUT_BOTH) return;
  long long* clocks = nullptr;
  gpu_check(cudaMalloc(&clocks, static_cast<size_t>(n) * sizeof(long long)), "cudaMalloc");
  launch(p, c, n, clocks);
  if (sends(&p->base)) samples_from(p->device, clocks, n, c->how == PING_PONG ? 2 : 1, us);
  gpu_check(cudaFree(clocks), "cudaFree");
}

// ---- the rest ----------------------------------------------------------------------------------------

static void repeat(program* base, const bench_case* c, long n, double* us) {
  nvshmem_program* p = self(base);
  bool fresh = p->fresh;
  p->fresh = false;
  if (fresh && p->signals) gpu_copy(&p->word, base->source, 8);
  if (p->in_kernel)
    repeat_in_kernel(p, c, n, us);
  else if (c->how == PING_PONG || c->how == EXCHANGE)
    trips_on_stream(p, c, n, fresh ? 1 : gpu_batch(c), us);
  else
    windows_on_stream(p, c, n, us);
  if (fresh && p->signals) gpu_copy(&p->seen, base->target, 8);
}

static long batch(program* base, const bench_case* c) { return self(base)->in_kernel ? 1 : gpu_batch(c); }

static void open_nvshmem(nvshmem_program* p) {
  nvshmemx_uniqueid_t mine = NVSHMEMX_UNIQUEID_INITIALIZER;
  static nvshmemx_uniqueid_t all[OOB_MOST_RANKS];
  if (!p->base.rank && nvshmemx_get_uniqueid(&mine)) die("nvshmemx_get_uniqueid failed");
  oob_all_gather(&p->ranks, &mine, sizeof mine, all);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  if (nvshmemx_set_attr_uniqueid_args(p->base.rank, p->base.ranks, &all[0], &attributes))
    die("nvshmemx_set_attr_uniqueid_args failed");
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes)) die("nvshmemx_init_attr failed");
  p->signal = static_cast<uint64_t*>(allocate(sizeof *p->signal));
  gpu_check(cudaMemset(p->signal, 0, sizeof *p->signal), "cudaMemset");
  gpu_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  wait_for_all(&p->base);
}

static const operations can = {open_case, close_case, repeat, gpu_program_copy, gpu_program_maximum, batch};

int main(int argc, char** argv) {
  static nvshmem_program p;
  gpu_program_open(&p, &can, argc, argv);
  int major = 0, minor = 0, patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  snprintf(p.library, sizeof p.library, "NVSHMEM %d.%d.%d", major, minor, patch);
  open_nvshmem(&p);
  measure_all(&p.base, argc, argv);
  wait_for_all(&p.base);
  nvshmem_free(p.signal);
  nvshmem_finalize();
  return 0;
}
