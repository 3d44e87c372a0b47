// A GPU as a device: the matrix is in its memory, DGEMM is done by the vendor's BLAS, rows and panels by
// kernels of our own; on AMD GPUs the CPUs factorize the panels. The queues other than `main` have a higher
// priority, so that panels are factorized and sent and rows are exchanged while the matrix is updated.
#include <algorithm>
#include <cstdlib>
#include <deque>

#include "device.h"
#include "gpu_blas.h"
#include "gpu_runtime.h"
#include "lists_gpu.h"
#include "ready_gpu.h"
#include "rows_gpu.cuh"
#if defined(HPL_ON_AMD)
#include "panel_none.h"
#else
#include "panel_cuda.h"
#endif

namespace hpl {

namespace {

#if defined(HPL_ON_AMD)
using GpuPanel = NoPanel;
constexpr const char* kKind = "hip";
#else
using GpuPanel = CudaPanel;
constexpr const char* kKind = "cuda";
#endif

constexpr unsigned kColumnBlocks = 4096;
constexpr int64_t kMovingBlocks = 64;  // of an urgent kernel: using all blocks would stop the update
constexpr size_t kMarks =
    1024;  // that are kept; a step of the factorization makes two for each piece of its update

unsigned blocks_for(int64_t columns) {
  return static_cast<unsigned>(std::min<int64_t>(columns, kColumnBlocks));
}

class GpuDevice : public Device {
 public:
  GpuDevice(int local_rank, const std::string& file) : library_(file) {
    // Loads kernels eagerly: a kernel that is loaded at its first use waits until the GPU is idle, so a panel
    // would wait for the update.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("HIP_ENABLE_DEFERRED_LOADING", "0", 0);
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus), "looking for GPUs");
    if (gpus == 0)
      throw std::runtime_error(std::string("hpl: --device ") + kKind + ", but this process sees no GPU.");
    index_ = local_rank % gpus;
    must(cudaSetDevice(index_), "cudaSetDevice");
    int least = 0, urgent = 0;
    must(cudaDeviceGetStreamPriorityRange(&least, &urgent), "cudaDeviceGetStreamPriorityRange");
    for (const Queue queue : {kMain, kAhead, kRows, kPanels})
      must(cudaStreamCreateWithPriority(&streams_[queue], cudaStreamNonBlocking,
                                        queue == kMain ? least : urgent),
           "cudaStreamCreate");
    for (const Queue queue : {kMain, kAhead})
      blas_[queue] = std::make_unique<GpuBlasStream>(library_, streams_[queue]);
    panel_ = std::make_unique<GpuPanel>(*blas_[kAhead], streams_[kAhead]);
    for (cudaEvent_t& event : marks_)
      must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }

  std::string name() const override {
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    return std::string(properties.name) + " (GPU " + std::to_string(index_) + "), " + library_.file();
  }
  /// FLOP per clock of the FP64 units, from the vendors' data sheets, times the highest clock rate.
  std::pair<double, std::string> peak() const override {
    const double units = attribute(cudaDevAttrMultiProcessorCount), khz = attribute(cudaDevAttrClockRate);
    const auto stated = [&](const char* units_x, int each,
                            const char* cores) -> std::pair<double, std::string> {
      if (each == 0) return {0, ""};
      return {units * each * khz * 1e3, std::to_string(int(units)) + units_x + std::to_string(each) +
                                            " FP64 FLOP a clock (" + cores + ") x " +
                                            std::to_string(int(khz / 1e3)) + " MHz"};
    };
#if defined(HPL_ON_AMD)
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    const std::string arch = properties.gcnArchName;
    return stated(" CUs x ", arch.rfind("gfx90a", 0) == 0 || arch.rfind("gfx942", 0) == 0 ? 256 : 0,
                  "matrix cores");
#else
    const int major = attribute(cudaDevAttrComputeCapabilityMajor);
    const int minor = attribute(cudaDevAttrComputeCapabilityMinor);
    const int each = major == 9 ? 256 : (major == 8 && minor == 0) || (major == 10 && minor == 0) ? 128 : 0;
    return stated(" SMs x ", each, "tensor cores");
#endif
  }
  bool on_host() const override { return false; }
  uint64_t room() const override {
    size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free - std::min<size_t>(free, size_t{512} << 20);  // reserved for the BLAS and the driver
  }
  int64_t widest() const override { return Ready::kWidest; }
  uint64_t own_bytes(int64_t nb) const override { return Ready::bytes(nb); }
  void expect(int64_t nb) override {
    ready_.reset();
    ready_ = std::make_unique<Ready>(nb);
    for (Mark& read : top_read_) read = mark(kMain);
  }

  void* allocate(size_t bytes) override {
    void* memory = nullptr;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemset(memory, 0, bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return memory;
  }
  void* allocate_host(size_t bytes) override {
    void* memory = nullptr;
    must(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    return memory;
  }
  void free(void* memory) override {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess && attributes.type == cudaMemoryTypeHost)
      cudaFreeHost(memory);
    else
      cudaFree(memory);
  }
  void copy(Queue queue, void* to, const void* from, size_t bytes) override {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streams_[queue]), "cudaMemcpyAsync");
    wait(queue);
  }
  void copy(Queue queue, double* to, int64_t to_ld, const double* from, int64_t from_ld, int64_t rows,
            int64_t columns) override {
    if (rows == 0 || columns == 0) return;
    launch("launching a kernel that copies columns", copy_columns, blocks_for(columns), kThreads,
           streams_[queue], to, to_ld, from, from_ld, rows, columns);
  }

  void* handle(Queue queue) const override { return streams_[queue]; }
  void wait(Queue queue) override { must(cudaStreamSynchronize(streams_[queue]), "cudaStreamSynchronize"); }
  Mark mark(Queue queue) override {
    must(cudaEventRecord(marks_[marked_ % kMarks], streams_[queue]), "cudaEventRecord");
    return marked_++;
  }
  void follow(Queue queue, Mark mark) override {
    must(cudaStreamWaitEvent(streams_[queue], event_of(mark), 0), "cudaStreamWaitEvent");
  }
  void reach(Mark mark) override { must(cudaEventSynchronize(event_of(mark)), "cudaEventSynchronize"); }

  void gemm(Queue queue, int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b,
            int64_t b_ld, double* c, int64_t c_ld) override {
    if (queue == kMain) note_time();
    blas_[queue]->gemm(m, n, k, a, a_ld, b, b_ld, c, c_ld);
    if (queue == kMain) note_time(), flop_ += 2.0 * double(m) * double(n) * double(k);
  }
  // Multiplying with the inverse takes a third of the time of cuBLAS's solve.
  void take_triangle(int64_t m, const double* l) override {
    double* inverse = ready_->next_inverse(m);
    launch("launching a kernel that makes an identity", set_identity, blocks_for(m), kThreads,
           streams_[kAhead], inverse, m);
    blas_[kAhead]->solve_lower(m, m, l, m, inverse, m);
    triangle_taken_ = mark(kAhead);
  }
  void solve_lower(Queue queue, int64_t n, TopRows b, TopRows x) override {
    const int64_t m = ready_->m();
    if (queue != kAhead) follow(queue, triangle_taken_);
    if (b.values == x.values) {
      b = {queue == kAhead ? ready_->top_ahead() : ready_->top(0), m};
      copy(queue, b.values, b.ld, x.values, x.ld, m, n);
    }
    blas_[queue]->product(m, n, m, ready_->inverse(), m, b.values, b.ld, x.values, x.ld);
    for (int place = 0; place < 2; ++place)
      if (b.values == ready_->top(place)) top_read_[place] = mark(queue);
  }
  void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) override {
    blas_[kMain]->solve_upper(n, u, u_ld, x);
  }
  void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) override {
    blas_[kMain]->gemv(m, n, a, a_ld, x, y);
  }

  void take_moves(const Moves& moves) override {
    ready_->next_moves(moves, streams_[kAhead]);
    moves_taken_ = mark(kAhead);
  }
  TopRows move_rows(Queue queue, double* a, int64_t ld, int64_t n) override {
    if (ready_->moved() > kRowThreads * kRowsEach)
      throw std::runtime_error("hpl: on a GPU NB is at most 4096.");
    double* top = ready_->top_ahead();
    if (queue != kAhead) {
      follow(queue, moves_taken_);
      follow(queue, top_read_[next_top_]);
      top = ready_->top(next_top_);
      next_top_ = 1 - next_top_;
    }
    launch("launching a kernel that moves rows", hpl::move_rows, unsigned(std::min(n, kMovingBlocks)),
           kRowThreads, streams_[queue], a, ld, ready_->from(), ready_->to(), ready_->width(),
           ready_->moved(), top, n);
    return {top, ready_->width()};
  }
  void gather_rows(Queue queue, double* out, int64_t out_ld, const double* a, int64_t ld,
                   const std::vector<int64_t>& rows, int64_t n) override {
    if (rows.empty() || n == 0) return;
    const long long* list = lists_[queue].put(rows, streams_[queue]);
    launch("launching a kernel that gathers rows", hpl::gather_rows, blocks_for(n), kThreads, streams_[queue],
           out, out_ld, a, ld, list, int(rows.size()), n);
    lists_[queue].launched(streams_[queue]);
  }
  void scatter_rows(Queue queue, double* a, int64_t ld, const std::vector<int64_t>& rows, const double* in,
                    int64_t in_ld, int64_t n) override {
    if (rows.empty() || n == 0) return;
    const long long* list = lists_[queue].put(rows, streams_[queue]);
    launch("launching a kernel that scatters rows", hpl::scatter_rows, blocks_for(n), kThreads,
           streams_[queue], a, ld, list, in, in_ld, int(rows.size()), n);
    lists_[queue].launched(streams_[queue]);
  }

  void generate(const Layout& layout, double* a, bool constant) override {
    const int64_t m = layout.rows.size(), n = layout.columns.size();
    if (m == 0 || n == 0) return;
    Powers powers{};
    for (int bit = 0; bit < 64; ++bit) powers.of[bit] = steps(uint64_t{1} << bit);
    const auto dealt = [](const Axis& axis) { return Dealt{axis.block, axis.ranks, axis.mine}; };
    launch("launching the generator", hpl::generate, blocks_for(n), kThreads, streams_[kMain], a, layout.ld,
           m, n, dealt(layout.rows), dealt(layout.columns), layout.n, powers, constant);
    wait(kMain);
  }
  void add_magnitudes(int64_t m, int64_t n, const double* a, int64_t ld, double* sums) override {
    if (m == 0 || n == 0) return;
    const dim3 blocks(static_cast<unsigned>((m + kThreads - 1) / kThreads), 16);
    launch("launching the sums of magnitudes", hpl::add_magnitudes, blocks, kThreads, streams_[kMain], m, n,
           a, ld, sums);
    wait(kMain);
  }

  size_t panel_room(int64_t nb) const override { return GpuPanel::room(nb); }
  PanelUnit panel_unit() const override {
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    PanelUnit unit{{}, panel_->blocks(), GpuPanel::kMostRanks};
    std::copy_n(properties.uuid.bytes, sizeof unit.gpu, unit.gpu);
    return unit;
  }
  void join(const PanelColumn& column) override { panel_->join(column); }
  bool factorize(const Panel& panel) override { return panel_->run(panel); }

  std::pair<double, double> gemm_spent() override {
    wait(kMain);
    for (size_t i = 0; i < used_; i += 2) {
      float ms = 0;
      must(cudaEventElapsedTime(&ms, times_[i], times_[i + 1]), "cudaEventElapsedTime");
      spent_ += 1e-3 * ms;
    }
    used_ = 0;
    return {spent_, flop_};
  }

 private:
  [[nodiscard]] cudaEvent_t event_of(Mark mark) const {
    if (marked_ - mark > kMarks) throw std::logic_error("hpl: a mark was followed that is too old.");
    return marks_[mark % kMarks];
  }
  int attribute(cudaDeviceAttr which) const {
    int value = 0;
    must(cudaDeviceGetAttribute(&value, which, index_), "cudaDeviceGetAttribute");
    return value;
  }
  void note_time() {
    if (used_ == times_.size()) must(cudaEventCreate(&times_.emplace_back()), "cudaEventCreate");
    must(cudaEventRecord(times_[used_++], streams_[kMain]), "cudaEventRecord");
  }

  GpuBlas library_;
  int index_ = 0;
  cudaStream_t streams_[kQueues] = {};
  std::unique_ptr<GpuBlasStream> blas_[2];
  std::unique_ptr<GpuPanel> panel_;
  std::unique_ptr<Ready> ready_;
  Lists lists_[kQueues];
  int next_top_ = 0;
  Mark triangle_taken_ = 0, moves_taken_ = 0, top_read_[2] = {};
  cudaEvent_t marks_[kMarks] = {};
  Mark marked_ = 0;
  std::deque<cudaEvent_t> times_;
  size_t used_ = 0;
  double spent_ = 0, flop_ = 0;
};

}  // namespace

}  // namespace hpl

extern "C" hpl::Device* hpl_make_gpu_device(int local_rank, const char* blas) {
  return new hpl::GpuDevice(local_rank, blas);
}
