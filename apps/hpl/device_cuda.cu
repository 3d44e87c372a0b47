// A GPU as a device: the matrix in its memory, DGEMM by cuBLAS, rows and panels by kernels of our
// own. The queue `ahead` has the higher priority, so that a panel is factorized while the matrix is updated.
#include <array>
#include <deque>

#include "cublas.h"
#include "device.h"
#include "panel_cuda.h"
#include "rows_cuda.cuh"
#include "solve_cuda.h"

namespace hpl {

namespace {

constexpr unsigned kColumnBlocks = 4096;

unsigned blocks_for(int64_t columns) {
  return static_cast<unsigned>(std::min<int64_t>(columns, kColumnBlocks));
}

/// Lists of rows on their way to kernels: each copy is kept until the kernel has read it.
class Lists {
 public:
  const long long* put(const std::vector<int64_t>& rows, cudaStream_t stream) {
    Slot& slot = slots_[next_];
    if (slot.used) must(cudaEventSynchronize(slot.used), "cudaEventSynchronize");
    const size_t bytes = sizeof(int64_t) * rows.size();
    if (slot.bytes < bytes) {
      if (slot.host != nullptr) must(cudaFreeHost(slot.host), "cudaFreeHost");
      if (slot.device != nullptr) must(cudaFree(slot.device), "cudaFree");
      must(cudaMallocHost(&slot.host, 2 * bytes), "cudaMallocHost");
      must(cudaMalloc(&slot.device, 2 * bytes), "cudaMalloc");
      slot.bytes = 2 * bytes;
    }
    if (!slot.used) must(cudaEventCreateWithFlags(&slot.used, cudaEventDisableTiming), "cudaEventCreate");
    std::copy(rows.begin(), rows.end(), static_cast<int64_t*>(slot.host));
    must(cudaMemcpyAsync(slot.device, slot.host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    taken_.push_back(next_);
    next_ = (next_ + 1) % slots_.size();
    return static_cast<const long long*>(slot.device);
  }
  /// The kernel that reads them has been launched.
  void launched(cudaStream_t stream) {
    must(cudaGetLastError(), "launching a kernel that moves rows");
    for (const size_t slot : taken_) must(cudaEventRecord(slots_[slot].used, stream), "cudaEventRecord");
    taken_.clear();
  }
  ~Lists() {
    for (Slot& slot : slots_) {
      cudaFreeHost(slot.host);
      cudaFree(slot.device);
      if (slot.used) cudaEventDestroy(slot.used);
    }
  }

 private:
  struct Slot {
    void *host = nullptr, *device = nullptr;
    size_t bytes = 0;
    cudaEvent_t used = nullptr;
  };
  std::array<Slot, 16> slots_;
  size_t next_ = 0;
  std::vector<size_t> taken_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(int local_rank, const std::string& file) : library_(file) {
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus), "looking for GPUs");
    if (gpus == 0) throw std::runtime_error("hpl: --device cuda, but this process sees no GPU.");
    index_ = local_rank % gpus;
    must(cudaSetDevice(index_), "cudaSetDevice");
    int least = 0, urgent = 0;
    must(cudaDeviceGetStreamPriorityRange(&least, &urgent), "cudaDeviceGetStreamPriorityRange");
    for (const Queue queue : {kMain, kAhead}) {
      must(cudaStreamCreateWithPriority(&streams_[queue], cudaStreamNonBlocking,
                                        queue == kAhead ? urgent : least),
           "cudaStreamCreate");
      blas_[queue] = std::make_unique<CublasStream>(library_, streams_[queue]);
    }
    panel_ = std::make_unique<CudaPanel>(*blas_[kAhead], streams_[kAhead]);
    must(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming), "cudaEventCreate");
    for (cudaEvent_t& event : marks_)
      must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }

  std::string name() const override {
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    return std::string(properties.name) + " (GPU " + std::to_string(index_) + "), " + library_.file();
  }
  /// FLOP a clock of the FP64 units, as NVIDIA's data sheets have them, times the highest clock.
  std::pair<double, std::string> peak() const override {
    const int major = attribute(cudaDevAttrComputeCapabilityMajor);
    const int minor = attribute(cudaDevAttrComputeCapabilityMinor);
    const int each = major == 9 ? 256 : (major == 8 && minor == 0) || (major == 10 && minor == 0) ? 128 : 0;
    const double units = attribute(cudaDevAttrMultiProcessorCount), khz = attribute(cudaDevAttrClockRate);
    if (each == 0) return {0, ""};
    return {units * each * khz * 1e3, std::to_string(int(units)) + " SMs x " + std::to_string(each) +
                                          " FP64 FLOP a clock (tensor cores) x " +
                                          std::to_string(int(khz / 1e3)) + " MHz"};
  }
  bool on_host() const override { return false; }
  uint64_t room() const override {
    size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free - std::min<size_t>(free, size_t{512} << 20);  // of cuBLAS and the driver
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
    must(
        cudaMemcpy2DAsync(to, sizeof(double) * size_t(to_ld), from, sizeof(double) * size_t(from_ld),
                          sizeof(double) * size_t(rows), size_t(columns), cudaMemcpyDefault, streams_[queue]),
        "cudaMemcpy2DAsync");
  }

  void wait(Queue queue) override { must(cudaStreamSynchronize(streams_[queue]), "cudaStreamSynchronize"); }
  void follow(Queue later, Queue earlier) override {
    must(cudaEventRecord(order_, streams_[earlier]), "cudaEventRecord");
    must(cudaStreamWaitEvent(streams_[later], order_, 0), "cudaStreamWaitEvent");
  }
  void mark() override { must(cudaEventRecord(marks_[marked_++ % 2], streams_[kMain]), "cudaEventRecord"); }
  void reach() override { must(cudaEventSynchronize(marks_[marked_ % 2]), "cudaEventSynchronize"); }

  void gemm(Queue queue, int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b,
            int64_t b_ld, double* c, int64_t c_ld) override {
    if (queue == kMain) note_time();
    blas_[queue]->gemm(m, n, k, a, a_ld, b, b_ld, c, c_ld);
    if (queue == kMain) note_time(), flop_ += 2.0 * double(m) * double(n) * double(k);
  }
  void solve_lower(Queue queue, int64_t m, int64_t n, const double* l, int64_t l_ld, double* b,
                   int64_t b_ld) override {
    hpl::solve_lower(*blas_[queue], m, n, l, l_ld, b, b_ld);
  }
  void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) override {
    blas_[kMain]->solve_upper(n, u, u_ld, x);
  }
  void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) override {
    blas_[kMain]->gemv(m, n, a, a_ld, x, y);
  }

  void move_rows(Queue queue, double* a, int64_t ld, const Moves& moves, int64_t n) override {
    const size_t count = moves.to.size();
    if (count == 0 || n == 0) return;
    if (count > size_t{kRowThreads} * kRowsEach)
      throw std::runtime_error("hpl: on a GPU NB is at most 4096.");
    const long long* to = lists_[queue].put(moves.to, streams_[queue]);
    const long long* from = lists_[queue].put(moves.from, streams_[queue]);
    hpl::move_rows<<<blocks_for(n), kRowThreads, 0, streams_[queue]>>>(a, ld, to, from, int(count), n);
    lists_[queue].launched(streams_[queue]);
  }
  void gather_rows(Queue queue, double* out, int64_t out_ld, const double* a, int64_t ld,
                   const std::vector<int64_t>& rows, int64_t n) override {
    if (rows.empty() || n == 0) return;
    const long long* list = lists_[queue].put(rows, streams_[queue]);
    hpl::gather_rows<<<blocks_for(n), 256, 0, streams_[queue]>>>(out, out_ld, a, ld, list, int(rows.size()),
                                                                 n);
    lists_[queue].launched(streams_[queue]);
  }
  void scatter_rows(Queue queue, double* a, int64_t ld, const std::vector<int64_t>& rows, const double* in,
                    int64_t in_ld, int64_t n) override {
    if (rows.empty() || n == 0) return;
    const long long* list = lists_[queue].put(rows, streams_[queue]);
    hpl::scatter_rows<<<blocks_for(n), 256, 0, streams_[queue]>>>(a, ld, list, in, in_ld, int(rows.size()),
                                                                  n);
    lists_[queue].launched(streams_[queue]);
  }

  void generate(const Layout& layout, double* a, bool constant) override {
    const int64_t m = layout.rows.size(), n = layout.columns.size();
    if (m == 0 || n == 0) return;
    Powers powers{};
    for (int bit = 0; bit < 64; ++bit) powers.of[bit] = steps(uint64_t{1} << bit);
    const auto dealt = [](const Axis& axis) { return Dealt{axis.block, axis.ranks, axis.mine}; };
    hpl::generate<<<blocks_for(n), 256, 0, streams_[kMain]>>>(
        a, layout.ld, m, n, dealt(layout.rows), dealt(layout.columns), layout.n, powers, constant);
    must(cudaGetLastError(), "launching the generator");
    wait(kMain);
  }
  void add_magnitudes(int64_t m, int64_t n, const double* a, int64_t ld, double* sums) override {
    if (m == 0 || n == 0) return;
    const dim3 blocks(static_cast<unsigned>((m + 255) / 256), 16);
    hpl::add_magnitudes<<<blocks, 256, 0, streams_[kMain]>>>(m, n, a, ld, sums);
    must(cudaGetLastError(), "launching the sums of magnitudes");
    wait(kMain);
  }

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
  int attribute(cudaDeviceAttr which) const {
    int value = 0;
    must(cudaDeviceGetAttribute(&value, which, index_), "cudaDeviceGetAttribute");
    return value;
  }
  void note_time() {
    if (used_ == times_.size()) must(cudaEventCreate(&times_.emplace_back()), "cudaEventCreate");
    must(cudaEventRecord(times_[used_++], streams_[kMain]), "cudaEventRecord");
  }

  Cublas library_;
  int index_ = 0;
  cudaStream_t streams_[2] = {};
  std::unique_ptr<CublasStream> blas_[2];
  std::unique_ptr<CudaPanel> panel_;
  Lists lists_[2];
  cudaEvent_t order_ = nullptr, marks_[2] = {};
  unsigned marked_ = 0;
  std::deque<cudaEvent_t> times_;
  size_t used_ = 0;
  double spent_ = 0, flop_ = 0;
};

}  // namespace

}  // namespace hpl

extern "C" hpl::Device* hpl_make_cuda_device(int local_rank, const char* cublas) {
  return new hpl::CudaDevice(local_rank, cublas);
}
