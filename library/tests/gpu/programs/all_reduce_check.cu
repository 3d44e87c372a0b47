// All-reduces inside kernels, by threads, warps and blocks, among ranks that may share a GPU: they must give
// the bits of the same all-reduce on a stream, and for types that only kernels combine those of the host. One
// JSON line a check; the exit code is 1 when one failed.
//
//   peerway run -n 4 -- all_reduce_check values
//   peerway run -n 2 -- all_reduce_check lost      rank 1 is killed; rank 0 must be told
//   peerway run -n 4 -- all_reduce_check times     microseconds of one all-reduce, in a kernel of many
#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include "plan_check/rank.cuh"

namespace {

using namespace check;
using namespace peerway::device;
using peerway::Status;

enum class By { thread, warp, block };

template <class T, Combine how, class Scope>
__device__ void reduce_part(const Scope& scope, Word worker, const pw_all_reduce_handle& handle, Word epoch,
                            T* to, const T* from, Word part, Word count, Word* failed) {
  const Word first = worker * part;
  if (first >= count) return;
  const Word here = count - first < part ? count - first : part;
  if (all_reduce<T, how>(scope, handle, epoch, to + first, from + first, here, first) != Result::ok &&
      scope.index() == 0)
    atomicAdd(failed, Word{1});
}

/// `turns` epochs from `epoch` on; every worker (a scope of its own) has `part` elements.
template <class T, Combine how>
__global__ void reduce_in_kernel(By by, const __grid_constant__ pw_all_reduce_handle handle, Word epoch,
                                 unsigned turns, T* to, const T* from, Word part, Word count, Word* failed) {
  const Word thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned turn = 0; turn < turns; ++turn) {
    if (by == By::thread)
      reduce_part<T, how>(Thread{}, thread, handle, epoch + turn, to, from, part, count, failed);
    else if (by == By::warp)
      reduce_part<T, how>(Warp{}, thread / 32, handle, epoch + turn, to, from, part, count, failed);
    else
      reduce_part<T, how>(Block{}, blockIdx.x, handle, epoch + turn, to, from, part, count, failed);
  }
}

/// Elements whose sums are inexact, of which few are negative.
template <class T>
__global__ void fill_elements(T* at, Word count, int rank, Word epoch) {
  for (Word n = threadIdx.x; n < count; n += blockDim.x) {
    const unsigned mixed = static_cast<unsigned>((n * 2654435761u) ^ (epoch * 40503u) ^ (rank * 97u)) % 5000;
    if constexpr (sizeof(T) == 2)
      at[n].bits = static_cast<unsigned short>(0x3c00 + mixed % 600);
    else
      at[n] = static_cast<T>(mixed) / static_cast<T>(3);
  }
}

/// Two all-reduces of the same elements: one for kernels, one on a stream.
template <Element element, Combine how>
class Pair {
  using T = typename peerway::device::detail::TypeOf<element>::Type;

 public:
  Pair(Rank& rank, Word count)
      : rank_(rank), count_(count), from_(region()), to_(region()), wanted_(region()) {
    const auto type = static_cast<peerway::Element>(element);
    const auto combine = static_cast<peerway::Combine>(how);
    in_kernels_.emplace(rank.ctx.all_reduce(type, to_.all(), from_.all(), combine));
    on_stream_.emplace(rank.ctx.all_reduce(type, wanted_.all(), from_.all(), combine));
    in_kernels_->set_timeout(30s);
    handle_ = in_kernels_->all_reduce_handle();
  }

  void enqueue(By by, unsigned workers, unsigned turns = 1) {
    const unsigned unit = handle_.unit / sizeof(T);
    const Word part = ((count_ + workers - 1) / workers + unit - 1) / unit * unit;
    const unsigned threads = by == By::thread ? 1 : by == By::warp ? 32 : 256;
    reduce_in_kernel<T, how><<<workers, threads, 0, rank_.stream>>>(
        by, handle_, epoch_ + 1, turns, address(to_), address(from_), part, count_, failed_.get());
    epoch_ += turns;
  }

  void check(By by, unsigned workers) {
    for (unsigned turn = 0; turn < 3; ++turn) {
      fill_elements<<<1, 256, 0, rank_.stream>>>(address(from_), count_, rank_.rank, epoch_);
      enqueue(by, workers);
      peerway::check(on_stream_->run(rank_.queue()));
      rank_.drain();
      std::vector<T> got(count_), wanted(count_);
      CUDA(cudaMemcpy(got.data(), to_.address(), count_ * sizeof(T), cudaMemcpyDefault));
      CUDA(cudaMemcpy(wanted.data(), wanted_.address(), count_ * sizeof(T), cudaMemcpyDefault));
      wrong_ += std::memcmp(got.data(), wanted.data(), count_ * sizeof(T)) != 0;
    }
  }

  [[nodiscard]] bool right() const { return wrong_ == 0 && failed_[0] == 0; }
  [[nodiscard]] Word failed() const { return failed_[0]; }
  [[nodiscard]] Status status() const { return in_kernels_->status(); }

 private:
  peerway::Region region() { return rank_.ctx.allocate(rank_.device, count_ * sizeof(T)); }
  static T* address(const peerway::Region& region) { return static_cast<T*>(region.address()); }

  Rank& rank_;
  Word count_;
  peerway::Region from_, to_, wanted_;
  std::optional<peerway::Plan> in_kernels_, on_stream_;
  pw_all_reduce_handle handle_{};
  Word epoch_ = 0;
  unsigned wrong_ = 0;
  Words failed_{1};
};

template <Element element, Combine how>
void values_of(Rank& rank, const char* name, Word count) {
  Pair<element, how> pair(rank, count);
  pair.check(By::thread, 1);
  pair.check(By::warp, 3);
  pair.check(By::block, 1);
  pair.check(By::block, 8);
  rank.say(std::string(name) + " of " + std::to_string(count) + " elements", pair.right());
  rank.meet();
}

void values(Rank& rank) {
  for (const Word count : {1, 5, 1000, 8192})
    values_of<Element::float64, Combine::sum>(rank, "sums in double", count);
  for (const Word count : {1, 3, 1000, 8192})
    values_of<Element::float32, Combine::sum>(rank, "sums in float", count);
  for (const Word count : {2, 4, 1002, 16384}) {
    values_of<Element::bfloat16, Combine::sum>(rank, "sums in bfloat16", count);
    values_of<Element::float16, Combine::max>(rank, "maxima in float16", count);
  }
  values_of<Element::int32, Combine::prod>(rank, "products in int", 77);
}

void lost(Rank& rank) {
  Pair<Element::float32, Combine::sum> pair(rank, 1024);
  rank.meet();
  if (rank.rank == 1) {
    pair.enqueue(By::block, 4, 20);
    rank.drain();
    std::raise(SIGKILL);
  }
  pair.enqueue(By::block, 4, 1000);
  rank.drain();
  const bool reported =
      pair.status() == Status::peer_lost && peerway::error_message().find("rank 1") != std::string::npos;
  rank.say("an all-reduce inside a kernel is released", reported && pair.failed() > 0,
           peerway::error_message());
}

/// A complex number, with the layout of C's and of cuda::std's.
template <class T>
struct Complex {
  T re, im;
};
struct Product {
  template <class T>
  __host__ __device__ Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
/// A value and where it was found. Two fill three packets of 8 bytes.
struct Located {
  float value;
  int rank, place;
};
struct FirstLargest {
  __host__ __device__ Located operator()(Located a, Located b) const { return b.value > a.value ? b : a; }
};

/// Small integers, of which all products are exact.
template <class T>
__host__ __device__ void set_element(Complex<T>& at, int rank, Word epoch, Word n) {
  at = {static_cast<T>((n + epoch + rank) % 3), static_cast<T>((n / 3 + rank) % 3) - 1};
}
/// Several ranks have the largest value, so that the order decides.
__host__ __device__ inline void set_element(Located& at, int rank, Word epoch, Word n) {
  at = {static_cast<float>((n + epoch) % (2 + rank % 2)), rank, static_cast<int>(n)};
}

/// One epoch of the elements of set_element(); every block has `part` of them.
template <class T, class Op>
__global__ void reduce_any(const __grid_constant__ pw_all_reduce_handle handle, Word epoch, T* at, Word part,
                           Word count, int rank, Word* failed) {
  const Word first = blockIdx.x * part;
  if (first >= count) return;
  const Word here = count - first < part ? count - first : part;
  for (Word n = threadIdx.x; n < here; n += blockDim.x) set_element(at[first + n], rank, epoch, first + n);
  __syncthreads();
  if (all_reduce(Block{}, handle, epoch, Op{}, at + first, at + first, here, first) != Result::ok &&
      threadIdx.x == 0)
    atomicAdd(failed, Word{1});
}

/// All-reduces of a type that the library has no name for, through the lanes of one of as many words.
template <class T, class Op>
void any_type(Rank& rank, const char* name, Word count) {
  const Word bytes = count * sizeof(T);
  const auto words = bytes % 8 == 0 ? peerway::Element::uint64 : peerway::Element::uint32;
  peerway::Region memory = rank.ctx.allocate(rank.device, bytes);
  peerway::Plan plan = rank.ctx.all_reduce(words, memory.all(), memory.all(), peerway::Combine::bit_or);
  plan.set_timeout(30s);
  const pw_all_reduce_handle handle = plan.all_reduce_handle();
  Words failed(1);
  auto* at = static_cast<T*>(memory.address());
  unsigned wrong = 0;
  for (Word epoch = 1; epoch < 6; ++epoch) {
    const unsigned blocks = epoch % 2 == 0 ? 1 : 4;
    const Word part = ((count + blocks - 1) / blocks + 1) / 2 * 2;
    reduce_any<T, Op>
        <<<blocks, 256, 0, rank.stream>>>(handle, epoch, at, part, count, rank.rank, failed.get());
    rank.drain();
    std::vector<T> got(count);
    CUDA(cudaMemcpy(got.data(), at, bytes, cudaMemcpyDefault));
    for (Word n = 0; n < count; ++n) {
      T wanted, next;
      set_element(wanted, 0, epoch, n);
      for (int other = 1; other < rank.team.size(); ++other) {
        set_element(next, other, epoch, n);
        wanted = Op{}(wanted, next);
      }
      wrong += std::memcmp(&got[n], &wanted, sizeof wanted) != 0;
    }
    rank.meet();  // the parts of the next epoch are others
  }
  rank.say(std::string(name) + " of " + std::to_string(count) + " elements", wrong == 0 && failed[0] == 0,
           std::to_string(wrong) + " wrong");
  rank.meet();
}

void any_types(Rank& rank) {
  for (const Word count : {1, 7, 1000}) {
    any_type<Complex<float>, Product>(rank, "products of complex numbers in float", count);
    any_type<Complex<double>, Product>(rank, "products of complex numbers in double", count);
    any_type<Located, FirstLargest>(rank, "first largest values with their places", count);
  }
}

double median_us(Rank& rank, const std::function<void()>& enqueue, unsigned turns) {
  std::vector<float> samples;
  cudaEvent_t begin = nullptr, end = nullptr;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  for (unsigned sample = 0; sample < 31; ++sample) {
    rank.drain();
    rank.meet();
    CUDA(cudaEventRecord(begin, rank.stream));
    enqueue();
    CUDA(cudaEventRecord(end, rank.stream));
    rank.drain();
    float milliseconds = 0;
    CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    samples.push_back(1000 * milliseconds / static_cast<float>(turns));
  }
  std::ranges::nth_element(samples, samples.begin() + 15);
  return samples[15];
}

void times(Rank& rank) {
  constexpr unsigned kTurns = 1000;
  for (const Word bytes : {8, 1024, 8192, 65536}) {
    Pair<Element::float32, Combine::sum> pair(rank, bytes / sizeof(float));
    const auto blocks = static_cast<unsigned>(std::clamp<Word>(bytes / 2048, 1, 32));
    const double us = median_us(rank, [&] { pair.enqueue(By::block, blocks, kTurns); }, kTurns);
    if (rank.rank == 0)
      std::printf(
          "{\"test\": \"all_reduce_in_kernel\", \"ranks\": %d, \"bytes\": %llu, \"blocks\": %u, \"us\": "
          "%.3f}\n",
          rank.team.size(), bytes, blocks, us);
    rank.meet();
  }
}

int run(const std::string& group) {
  auto team = peerway::Team::from_launcher();
  int gpus = 0;
  CUDA(cudaGetDeviceCount(&gpus));
  Rank rank(team, team.rank() % gpus, false);
  if (group == "values") {
    values(rank);
    any_types(rank);
  }
  if (group == "lost") lost(rank);
  if (group == "times") times(rank);
  rank.meet();
  return failures > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "values");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
