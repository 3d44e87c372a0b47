// What NCCL does, measured: grouped send and receive ("nccl"), pack, send, receive, unpack in stream order
// ("nccl/pack"), send and receive captured into a CUDA graph and replayed ("nccl/graph"), and its one-sided
// put with signal into a registered window ("nccl/rma", NCCL 2.29 and newer).
#include <nccl.h>

#include "gpu.h"

#define HAS_PUT_SIGNAL (NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0))

struct nccl_program : gpu_program {
  ncclComm_t comm = nullptr;
  void* packed[2] = {nullptr, nullptr};
  bool packs = false, one_sided = false, captured = false;
  cudaGraphExec_t graph = nullptr;  // of the trips of one sample
#if HAS_PUT_SIGNAL
  ncclWindow_t windows[2] = {nullptr, nullptr};  // over source and target
#endif
};

static nccl_program* self(program* base) {
  return static_cast<nccl_program*>(reinterpret_cast<gpu_program*>(base));
}

static void nccl_check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess)
    die("%s failed: %s (%s)", call, ncclGetErrorString(result), ncclGetLastError(nullptr));
}

// ---- making a case ready -----------------------------------------------------------------------------

static void* allocate(size_t bytes) {
  void* address = nullptr;
  nccl_check(ncclMemAlloc(&address, bytes), "ncclMemAlloc");
  return address;
}

static const char* open_windows(nccl_program* p, size_t bytes) {
#if HAS_PUT_SIGNAL
  void* memory[] = {p->base.source, p->base.target};
  bool refused = false;
  for (int i = 0; i < 2; ++i)
    if (ncclCommWindowRegister(p->comm, memory[i], bytes, &p->windows[i], NCCL_WIN_COLL_SYMMETRIC) !=
            ncclSuccess ||
        !p->windows[i])
      refused = true;
  return agree(&p->base, refused ? 1 : 0) != 0 ? "ncclCommWindowRegister refused the memory" : nullptr;
#else
  (void)p, (void)bytes;
  return "this NCCL has no ncclPutSignal; 2.29 or newer has it";
#endif
}

static void close_windows(nccl_program* p) {
#if HAS_PUT_SIGNAL
  for (ncclWindow_t& window : p->windows) {
    if (window) nccl_check(ncclCommWindowDeregister(p->comm, window), "ncclCommWindowDeregister");
    window = nullptr;
  }
#else
  (void)p;
#endif
}

static void close_case(program* base, const bench_case*) {
  nccl_program* p = self(base);
  wait_for_all(base);
  close_windows(p);
  if (p->graph) gpu_check(cudaGraphExecDestroy(p->graph), "cudaGraphExecDestroy");
  p->graph = nullptr;
  nccl_check(ncclMemFree(base->source), "ncclMemFree");
  nccl_check(ncclMemFree(base->target), "ncclMemFree");
  for (int i = 0; p->packs && i < 2; ++i) nccl_check(ncclMemFree(p->packed[i]), "ncclMemFree");
}

static const char* open_case(program* base, const bench_case* c) {
  nccl_program* p = self(base);
  p->packs = !strcmp(c->via, "nccl/pack");
  p->one_sided = !strcmp(c->via, "nccl/rma");
  p->captured = !strcmp(c->via, "nccl/graph");
  if (c->how == GET_EACH || c->how == GET_WINDOW) return "NCCL has no get";
  if (p->packs && c->how != PING_PONG) return "faces are measured there and back only";
  if (!p->packs && !contiguous(c->form)) return "NCCL has no strided datatypes";
  if (p->captured && c->how != PING_PONG && c->how != EXCHANGE) return "graphs are measured trip by trip";
  size_t bytes = (extent(c->form) + 4095) / 4096 * 4096;  // windows are registered in pages
  base->source = allocate(bytes);
  base->target = allocate(bytes);
  for (int i = 0; p->packs && i < 2; ++i) p->packed[i] = allocate(c->bytes);
  const char* why = p->one_sided ? open_windows(p, bytes) : nullptr;
  if (why) close_case(base, c);
  return why;
}

// ---- in stream order ---------------------------------------------------------------------------------

static void put_one(nccl_program* p, const bench_case* c) {
#if HAS_PUT_SIGNAL
  nccl_check(ncclPutSignal(p->base.source, c->bytes, ncclInt8, other(&p->base), p->windows[1], 0, 0, 0, 0,
                           p->comm, p->device.stream),
             "ncclPutSignal");
#else
  (void)p, (void)c;
#endif
}

static void answer(nccl_program* p) {
#if HAS_PUT_SIGNAL
  nccl_check(ncclSignal(other(&p->base), 0, 0, 0, p->comm, p->device.stream), "ncclSignal");
#else
  (void)p;
#endif
}

static void wait_signals(nccl_program* p, long puts) {
#if HAS_PUT_SIGNAL
  ncclWaitSignalDesc_t from{};
  from.opCnt = static_cast<int>(puts);
  from.peer = other(&p->base);
  nccl_check(ncclWaitSignal(1, &from, p->comm, p->device.stream), "ncclWaitSignal");
#else
  (void)p, (void)puts;
#endif
}

static void send_one(nccl_program* p, const bench_case* c) {
  void* from = p->packs ? p->packed[0] : p->base.source;
  if (p->packs) gpu_copy_rows(p->device, from, p->base.source, c->form, false);
  nccl_check(ncclSend(from, c->bytes, ncclInt8, other(&p->base), p->comm, p->device.stream), "ncclSend");
}

static void receive_one(nccl_program* p, const bench_case* c) {
  void* to = p->packs ? p->packed[1] : p->base.target;
  nccl_check(ncclRecv(to, c->bytes, ncclInt8, other(&p->base), p->comm, p->device.stream), "ncclRecv");
  if (p->packs) gpu_copy_rows(p->device, to, p->base.target, c->form, true);
}

static void one_way(nccl_program* p, const bench_case* c, bool outgoing) {
  if (p->one_sided)
    outgoing ? put_one(p, c) : wait_signals(p, 1);
  else
    outgoing ? send_one(p, c) : receive_one(p, c);
}

// Both ways in one group, or there and back.
static void trip(nccl_program* p, const bench_case* c) {
  bool first = sends(&p->base);
  if (c->how == PING_PONG) {
    one_way(p, c, first);
    one_way(p, c, !first);
  } else if (p->one_sided) {
    put_one(p, c);
    wait_signals(p, 1);
  } else {
    nccl_check(ncclGroupStart(), "ncclGroupStart");
    send_one(p, c);
    receive_one(p, c);
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
  }
}

static void capture(nccl_program* p, const bench_case* c) {
  cudaGraph_t graph;
  trip(p, c);  // connects, which is no part of the graph
  gpu_finish(p->device);
  gpu_check(cudaStreamBeginCapture(p->device.stream, cudaStreamCaptureModeThreadLocal),
            "cudaStreamBeginCapture");
  for (long b = 0; b < gpu_batch(c); ++b) trip(p, c);
  gpu_check(cudaStreamEndCapture(p->device.stream, &graph), "cudaStreamEndCapture");
  gpu_check(cudaGraphInstantiate(&p->graph, graph, 0), "cudaGraphInstantiate");
  gpu_check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

static void trips_of(nccl_program* p, const bench_case* c, long n, double* us) {
  long batch = gpu_batch(c);
  double trips = static_cast<double>(c->how == PING_PONG ? 2 * batch : batch);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    if (p->captured)
      gpu_check(cudaGraphLaunch(p->graph, p->device.stream), "cudaGraphLaunch");
    else
      for (long b = 0; b < batch; ++b) trip(p, c);
    gpu_finish(p->device);
    if (sends(&p->base)) us[i] = (now_us() - start) / trips;
  }
}

// All messages of a window in one group; both ways when `in` and `out`.
static void two_sided_window(nccl_program* p, const bench_case* c, bool out, bool in) {
  nccl_check(ncclGroupStart(), "ncclGroupStart");
  for (long w = 0; w < c->window; ++w) {
    if (out) send_one(p, c);
    if (in) receive_one(p, c);
  }
  nccl_check(ncclGroupEnd(), "ncclGroupEnd");
}

static void one_sided_window(nccl_program* p, const bench_case* c, bool out, bool in) {
  for (long w = 0; out && w < c->window; ++w) put_one(p, c);
  if (in) wait_signals(p, c->window);
}

// The sender's kernel ends when the receiver has taken all; a put ends before, so there the receiver answers.
static void windows(nccl_program* p, const bench_case* c, long n, double* us) {
  bool first = sends(&p->base), both = c->how == PUT_BOTH;
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    if (p->one_sided) {
      one_sided_window(p, c, first || both, !first || both);
      if (!both) first ? wait_signals(p, 1) : answer(p);
    } else {
      two_sided_window(p, c, first || both, !first || both);
    }
    gpu_finish(p->device);
    if (first) us[i] = now_us() - start;
  }
}

static void repeat(program* base, const bench_case* c, long n, double* us) {
  nccl_program* p = self(base);
  if (p->captured && !p->graph) capture(p, c);
  if (c->how == PING_PONG || c->how == EXCHANGE)
    trips_of(p, c, n, us);
  else
    windows(p, c, n, us);
}

// ---- the rest ----------------------------------------------------------------------------------------

static long batch(program*, const bench_case* c) { return gpu_batch(c); }

static void open_nccl(nccl_program* p) {
  ncclUniqueId mine{}, all[OOB_MOST_RANKS];
  if (!p->base.rank) nccl_check(ncclGetUniqueId(&mine), "ncclGetUniqueId");
  oob_all_gather(&p->ranks, &mine, sizeof mine, all);
  nccl_check(ncclCommInitRank(&p->comm, p->base.ranks, all[0], p->base.rank), "ncclCommInitRank");
}

static const operations can = {open_case, close_case, repeat, gpu_program_copy, gpu_program_maximum, batch};

int main(int argc, char** argv) {
  static nccl_program p;
  gpu_program_open(&p, &can, argc, argv);
  int version = 0;
  nccl_check(ncclGetVersion(&version), "ncclGetVersion");
  snprintf(p.library, sizeof p.library, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  open_nccl(&p);
  measure_all(&p.base, argc, argv);
  wait_for_all(&p.base);
  nccl_check(ncclCommDestroy(p.comm), "ncclCommDestroy");
  return 0;
}
