/* What MPI does, measured: send and receive as OSU's benchmarks use them ("openmpi"), with vector datatypes
 * for faces; one-sided windows for the gets and, as "openmpi/rma", for puts; pack, send, unpack as
 * "openmpi/pack"; halos of distributed arrays by both. */
#include <mpi.h>

#include "measure.h"
#include "memory.h"
#include "openmpi_halo.h"

typedef struct mpi_program {
  program base;
  memory memory;
  MPI_Datatype type;      /* one message in source and target */
  MPI_Request* requests;  /* two windows */
  void* packed[2];        /* outgoing, incoming */
  MPI_Win window, flags;  /* over target (or source, for gets); over one counter */
  volatile int64_t* flag; /* notified by the other rank */
  int64_t notified, window_made;
  int packs, one_sided, exchanges_halo;
  mpi_halo halo;
} mpi_program;

enum { TAG = 7 };

static void mpi_check(int error, const char* call) {
  if (error != MPI_SUCCESS) die("%s failed with error %d", call, error);
}

/* ---- making a case ready ----------------------------------------------------------------------- */

static MPI_Datatype type_of(shape s) {
  MPI_Datatype type, element = s.block_bytes % 8 || s.pitch % 8 ? MPI_BYTE : MPI_DOUBLE;
  int width = element == MPI_BYTE ? 1 : 8;
  if (contiguous(s))
    mpi_check(MPI_Type_contiguous((int)(s.blocks * s.block_bytes), MPI_BYTE, &type), "MPI_Type_contiguous");
  else
    mpi_check(
        MPI_Type_vector((int)s.blocks, (int)(s.block_bytes / width), (int)(s.pitch / width), element, &type),
        "MPI_Type_vector");
  mpi_check(MPI_Type_commit(&type), "MPI_Type_commit");
  return type;
}

/* Host memory that MPI allocates can be shared directly; GPU memory is registered as it is. */
static void make_window(mpi_program* p, void** memory, size_t bytes) {
  if (p->memory.cuda)
    mpi_check(MPI_Win_create(*memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->window),
              "MPI_Win_create");
  else
    mpi_check(MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &p->window),
              "MPI_Win_allocate");
  mpi_check(MPI_Win_lock_all(MPI_MODE_NOCHECK, p->window), "MPI_Win_lock_all");
}

static void open_windows(mpi_program* p, const bench_case* c) {
  int gets = c->how == GET_EACH || c->how == GET_WINDOW;
  size_t bytes = extent(c->form);
  void** exposed = gets ? &p->base.source : &p->base.target;
  if (!p->memory.cuda) memory_release(&p->memory, *exposed);
  make_window(p, exposed, bytes);
  if (!p->memory.cuda) memset(*exposed, 0, bytes);
  void* counter;
  mpi_check(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &p->flags), "MPI_Win_allocate");
  p->flag = (volatile int64_t*)counter;
  *p->flag = p->notified = 0;
  mpi_check(MPI_Win_lock_all(MPI_MODE_NOCHECK, p->flags), "MPI_Win_lock_all");
  p->window_made = 1;
}

static const char* open_halo(mpi_program* p, const bench_case* c) {
  mpi_halo_open(&p->halo, &p->memory, c->label, p->base.rank, p->packs);
  if (halo_ranks(&p->halo.form) != (size_t)p->base.ranks)
    die("%s is of %zu ranks, but there are %d", c->label, halo_ranks(&p->halo.form), p->base.ranks);
  p->base.source = p->base.target = memory_allocate(&p->memory, p->halo.bytes);
  return NULL;
}

static const char* open_case(program* base, const bench_case* c) {
  mpi_program* p = (mpi_program*)base;
  if (c->bytes > INT32_MAX || c->form.blocks > INT32_MAX)
    return "MPI counts are int: at most 2147483647 bytes";
  p->packs = !strcmp(c->via, "openmpi/pack");
  p->one_sided = !strcmp(c->via, "openmpi/rma") || c->how == GET_EACH || c->how == GET_WINDOW;
  p->exchanges_halo = !strcmp(c->test, "halo");
  if (p->packs && p->memory.cuda && !p->memory.copy_rows[0]) return "no compiler for the pack kernels";
  if (p->exchanges_halo) return open_halo(p, c);
  if (base->ranks % 2 || base->ranks < 2) return "ranks work in pairs, so an even number is needed";
  base->source = memory_allocate(&p->memory, extent(c->form));
  base->target = memory_allocate(&p->memory, extent(c->form));
  if (p->packs)
    for (int i = 0; i < 2; ++i) p->packed[i] = memory_allocate(&p->memory, c->bytes);
  p->type = type_of(c->form);
  p->requests = (MPI_Request*)host_bytes(2 * (size_t)c->window * sizeof(MPI_Request));
  if (p->one_sided) open_windows(p, c);
  return NULL;
}

static void close_windows(mpi_program* p, const bench_case* c) {
  int gets = c->how == GET_EACH || c->how == GET_WINDOW;
  MPI_Win_unlock_all(p->window);
  MPI_Win_unlock_all(p->flags);
  MPI_Win_free(&p->flags);
  MPI_Win_free(&p->window); /* and host memory that it allocated */
  if (!p->memory.cuda) *(gets ? &p->base.source : &p->base.target) = NULL;
  p->window_made = 0;
}

static void close_case(program* base, const bench_case* c) {
  mpi_program* p = (mpi_program*)base;
  MPI_Barrier(MPI_COMM_WORLD);
  if (p->exchanges_halo) {
    mpi_halo_close(&p->halo, &p->memory);
    memory_release(&p->memory, base->source);
    return;
  }
  if (p->window_made) close_windows(p, c);
  if (base->source) memory_release(&p->memory, base->source);
  if (base->target) memory_release(&p->memory, base->target);
  if (p->packs)
    for (int i = 0; i < 2; ++i) memory_release(&p->memory, p->packed[i]);
  MPI_Type_free(&p->type);
  free(p->requests);
}

/* ---- there and back ---------------------------------------------------------------------------- */

static void send_one(mpi_program* p) {
  MPI_Send(p->base.source, 1, p->type, other(&p->base), TAG, MPI_COMM_WORLD);
}

static void receive_one(mpi_program* p) {
  MPI_Recv(p->base.target, 1, p->type, other(&p->base), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pack_and_send(mpi_program* p, const bench_case* c) {
  memory_copy_rows(&p->memory, p->packed[0], p->base.source, c->form, 0);
  MPI_Send(p->packed[0], (int)c->bytes, MPI_BYTE, other(&p->base), TAG, MPI_COMM_WORLD);
}

static void receive_and_unpack(mpi_program* p, const bench_case* c) {
  MPI_Recv(p->packed[1], (int)c->bytes, MPI_BYTE, other(&p->base), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memory_copy_rows(&p->memory, p->packed[1], p->base.target, c->form, 1);
}

/* Data, then a counter: the flush between them is what MPI offers to order the two. */
static void put_and_notify(mpi_program* p) {
  int to = other(&p->base);
  int64_t value = p->notified + 1, before;
  MPI_Put(p->base.source, 1, p->type, to, 0, 1, p->type, p->window);
  MPI_Win_flush(to, p->window);
  MPI_Fetch_and_op(&value, &before, MPI_INT64_T, to, 0, MPI_REPLACE, p->flags);
  MPI_Win_flush(to, p->flags);
}

static void wait_notified(mpi_program* p) {
  int64_t wanted = p->notified + 1;
  for (unsigned turn = 1; *p->flag < wanted; ++turn) {
    int ignored;
    MPI_Win_sync(p->flags);
    if (turn % 16 == 0) /* lets components without shared memory progress */
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &ignored, MPI_STATUS_IGNORE);
  }
  MPI_Win_sync(p->window);
}

static void one_way(mpi_program* p, const bench_case* c, int outgoing) {
  if (p->one_sided) {
    outgoing ? put_and_notify(p) : wait_notified(p);
  } else if (p->packs) {
    outgoing ? pack_and_send(p, c) : receive_and_unpack(p, c);
  } else {
    outgoing ? send_one(p) : receive_one(p);
  }
  if (!outgoing && !p->memory.cuda) touch(&p->base, c);
}

static void ping_pong(mpi_program* p, const bench_case* c, long n, double* us) {
  int first = sends(&p->base);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    one_way(p, c, first);
    one_way(p, c, !first);
    ++p->notified;
    if (first) us[i] = (now_us() - start) / 2;
  }
}

/* ---- windows ----------------------------------------------------------------------------------- */

static void send_window(mpi_program* p, long window) {
  int to = other(&p->base);
  char done;
  for (long w = 0; w < window; ++w)
    MPI_Isend(p->base.source, 1, p->type, to, TAG, MPI_COMM_WORLD, &p->requests[w]);
  MPI_Waitall((int)window, p->requests, MPI_STATUSES_IGNORE);
  MPI_Recv(&done, 1, MPI_CHAR, to, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(mpi_program* p, long window) {
  int from = other(&p->base);
  char done = 1;
  for (long w = 0; w < window; ++w)
    MPI_Irecv(p->base.target, 1, p->type, from, TAG, MPI_COMM_WORLD, &p->requests[w]);
  MPI_Waitall((int)window, p->requests, MPI_STATUSES_IGNORE);
  MPI_Send(&done, 1, MPI_CHAR, from, TAG + 1, MPI_COMM_WORLD);
}

static void exchange_window(mpi_program* p, long window) {
  int peer = other(&p->base);
  for (long w = 0; w < window; ++w)
    MPI_Irecv(p->base.target, 1, p->type, peer, TAG, MPI_COMM_WORLD, &p->requests[w]);
  for (long w = 0; w < window; ++w)
    MPI_Isend(p->base.source, 1, p->type, peer, TAG, MPI_COMM_WORLD, &p->requests[window + w]);
  MPI_Waitall(2 * (int)window, p->requests, MPI_STATUSES_IGNORE);
}

static void one_sided_window(mpi_program* p, const bench_case* c) {
  int peer = other(&p->base);
  int gets = c->how == GET_EACH || c->how == GET_WINDOW;
  for (long w = 0; w < c->window; ++w)
    gets ? MPI_Get(p->base.target, 1, p->type, peer, 0, 1, p->type, p->window)
         : MPI_Put(p->base.source, 1, p->type, peer, 0, 1, p->type, p->window);
  MPI_Win_flush(peer, p->window);
}

static void windows(mpi_program* p, const bench_case* c, long n, double* us) {
  int first = sends(&p->base);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    if (p->one_sided) {
      if (first || c->how == PUT_BOTH) one_sided_window(p, c);
    } else if (c->how == PUT_BOTH) {
      exchange_window(p, c->window);
    } else {
      first ? send_window(p, c->window) : receive_window(p, c->window);
    }
    if (first) us[i] = now_us() - start;
  }
  if (p->one_sided) { /* the other rank lets its library progress here, and sees the data after */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(p->window);
  }
}

/* As a program exchanges with its neighbour: the receive first, then the send, and both are waited for. */
static void exchanges(mpi_program* p, long n, double* us) {
  int peer = other(&p->base);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    MPI_Irecv(p->base.target, 1, p->type, peer, TAG, MPI_COMM_WORLD, &p->requests[0]);
    MPI_Isend(p->base.source, 1, p->type, peer, TAG, MPI_COMM_WORLD, &p->requests[1]);
    MPI_Waitall(2, p->requests, MPI_STATUSES_IGNORE);
    us[i] = now_us() - start;
  }
}

static void halo_exchanges(mpi_program* p, long n, double* us) {
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    mpi_halo_exchange(&p->halo, &p->memory, p->base.source);
    us[i] = now_us() - start;
  }
}

static void repeat(program* base, const bench_case* c, long n, double* us) {
  mpi_program* p = (mpi_program*)base;
  if (p->exchanges_halo)
    halo_exchanges(p, n, us);
  else if (c->how == PING_PONG)
    ping_pong(p, c, n, us);
  else if (c->how == EXCHANGE)
    exchanges(p, n, us);
  else
    windows(p, c, n, us);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void copy(program* base, void* to, const void* from, size_t bytes) {
  memory_copy(&((mpi_program*)base)->memory, to, from, bytes);
}

static void maximum(program* base, double* values, long n) {
  (void)base;
  mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
            "MPI_Allreduce");
}

static int validate_halo(mpi_program* p, int index) {
  unsigned char *image = (unsigned char*)host_bytes(p->halo.bytes),
                *wanted = (unsigned char*)host_bytes(p->halo.bytes);
  double unused = 0;
  halo_image(&p->halo.form, p->base.rank, index, 0, image);
  copy(&p->base, p->base.source, image, p->halo.bytes);
  wait_for_all(&p->base);
  halo_exchanges(p, 1, &unused);
  wait_for_all(&p->base);
  copy(&p->base, image, p->base.source, p->halo.bytes);
  halo_image(&p->halo.form, p->base.rank, index, 1, wanted);
  int right = !memcmp(image, wanted, p->halo.bytes);
  free(image);
  free(wanted);
  return right;
}

static int validate_case(program* base, const bench_case* c, int index) {
  mpi_program* p = (mpi_program*)base;
  return p->exchanges_halo ? validate_halo(p, index) : validate_pair(base, c, index);
}

static const operations can = {open_case, close_case, repeat, copy, maximum, NULL, validate_case};

int main(int argc, char** argv) {
  mpi_program p;
  memset(&p, 0, sizeof p);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  const char* local =
      getenv("OMPI_COMM_WORLD_LOCAL_RANK"); /* before MPI_Init: the GPU must be current by then */
  memory_open(&p.memory, option(argc, argv, "--devices", "host"), local ? atoi(local) : 0,
              option(argc, argv, "--cubin", ""));
  mpi_check(MPI_Init(&argc, &argv), "MPI_Init");
  MPI_Comm_rank(MPI_COMM_WORLD, &p.base.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p.base.ranks);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0; /* "Open MPI v4.1.4" */
  p.base.library = version;
  p.base.device = p.memory.device;
  p.base.can = &can;
  p.base.any_number = 1; /* halos are exchanged among any */
  measure_all(&p.base, argc, argv);
  MPI_Finalize();
  return 0;
}
