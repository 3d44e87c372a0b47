// A reduction of values on the GPUs of several ranks in one launch. A thread puts its value into a slot at
// each other rank, in packets that contain their flag, and waits for the values of the others.
#include "peerway/device/packet.cuh"

// Waits for the work before this kernel: its launch overlaps that work (pwx_kernel::exchanges).
inline __device__ void pwx_in_order() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// The words of a value, of 8 or 4 bytes; each is sent in a packet.
template <bool Wide>
struct pwx_word {
  using of = peerway::device::Word;
};
template <>
struct pwx_word<false> {
  using of = unsigned;
};
template <class T>
struct pwx_packets {
  using Data = typename pwx_word<sizeof(T) % 8 == 0>::of;
  using Packet = typename peerway::device::detail::PacketOf<Data>::Type;
  static constexpr int words = sizeof(T) / sizeof(Data);
  Packet of[words];

  // Stores a value as element i of a slot.
  static __device__ void send(unsigned char* slot, long i, const T& value, unsigned flag) {
    Data data[words];
    memcpy(data, &value, sizeof(T));
    for (int w = 0; w < words; ++w)
      peerway::device::detail::store_packet((Packet*)slot + i * words + w,
                                            peerway::device::detail::make_packet(data[w], flag));
  }
  __device__ void load(const unsigned char* slot, long i) {
    for (int w = 0; w < words; ++w)
      of[w] = peerway::device::detail::load_packet((const Packet*)slot + i * words + w);
  }
  __device__ bool arrived(unsigned flag) const {
    bool all = true;
    for (int w = 0; w < words; ++w) all = peerway::device::detail::arrived(of[w], flag) && all;
    return all;
  }
  __device__ T value() const {
    Data data[words];
    for (int w = 0; w < words; ++w) data[w] = (Data)peerway::device::detail::data_of(of[w]);
    T element;
    memcpy(&element, data, sizeof(T));
    return element;
  }
};

// Replaces values[i] by the result of `op` for all ranks' values, in the order of their places, so that all
// ranks get the same bits. All ranks must call it with the same grid. The guard reports a wait that ends
// early.
template <class Op, class T>
__device__ void pwx_exchange(Op op, T* values, long count, const pwx_peers& peers) {
  pwx_in_order();
  // The kernel counts epochs itself, so that replays of a graph count like launches.
  const unsigned long long epoch = peerway::device::detail::load_relaxed(&peers.epochs[blockIdx.x]) + 1;
  const unsigned flag = (unsigned)epoch;
  const unsigned long long turn = (epoch & 1) * peers.slot_bytes;
  __syncthreads();
  if (threadIdx.x == 0) peerway::device::detail::store_relaxed(&peers.epochs[blockIdx.x], epoch);
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += (long)gridDim.x * blockDim.x) {
    const T mine = values[i];
    for (int k = 0; k < peers.count; ++k) pwx_packets<T>::send(peers.of[k].to + turn, i, mine, flag);
    pwx_packets<T> packets[pwx_most_peers];
    peerway::device::detail::Deadline deadline(peers.guard, -1, epoch);
    for (bool all = false; !all;) {
      PW_UNROLL
      // unrolled, so that the loads of all ranks are under way at once
      for (int k = 0; k < pwx_most_peers; ++k)
        if (k < peers.count) packets[k].load(peers.of[k].from + turn, i);
      all = true;
      int late = -1;
      PW_UNROLL
      for (int k = 0; k < pwx_most_peers; ++k)
        if (k < peers.count && !packets[k].arrived(flag)) {
          all = false;
          late = peers.of[k].rank;
        }
      if (!all && !deadline.keep_waiting(late)) return;
    }
    T joined = peers.place == 0 ? mine : packets[0].value();
    PW_UNROLL
    for (int place = 1; place <= pwx_most_peers; ++place)
      if (place <= peers.count) {
        const int before = place < pwx_most_peers ? place : 0;  // for ranks before this one
        const pwx_packets<T>& theirs = place < peers.place ? packets[before] : packets[place - 1];
        joined = op(joined, place == peers.place ? mine : theirs.value());
      }
    values[i] = joined;
  }
}
