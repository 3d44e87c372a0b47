/* Bare UCP, measured: put and get into imported memory, a put of a counter to tell that the data is there,
 * and tagged messages ("ucx/tag") for the two-sided ping-pong. Faces are one put a block, since UCP has no
 * strided put. */
#include <ucp/api/ucp.h>

#include "memory.h"
#include "oob.h"

enum { KEY_MOST = 1024, ADDRESS_MOST = 4096, TAG = 7 };

typedef struct region { /* mine, and the other rank's of the same kind */
  void* address;
  ucp_mem_h handle;
  uint64_t remote;
  ucp_rkey_h key;
} region;

typedef struct ucx_program {
  program base;
  oob ranks;
  memory memory;
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_ep_h peer;
  region source, target, flag, value; /* flag: peers notify it; value: what I put there; both on the host */
  uint64_t notified, seen;            /* the counter and the signal word that arrived last */
} ucx_program;

typedef struct exported {
  uint64_t address;
  size_t bytes;
  char key[KEY_MOST];
} exported;

typedef struct worker_name {
  size_t bytes;
  char address[ADDRESS_MOST];
} worker_name;

static void ucx_check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) die("%s failed: %s", call, ucs_status_string(status));
}

/* ---- completion -------------------------------------------------------------------------------- */

static void finish(ucx_program* p, ucs_status_ptr_t request, const char* call) {
  if (!request) return;
  if (UCS_PTR_IS_ERR(request)) ucx_check(UCS_PTR_STATUS(request), call);
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(p->worker);
  ucp_request_free(request);
  ucx_check(status, call);
}

/* For operations that a later flush completes. */
static void let_go(ucs_status_ptr_t request, const char* call) {
  if (!request) return;
  if (UCS_PTR_IS_ERR(request)) ucx_check(UCS_PTR_STATUS(request), call);
  ucp_request_free(request);
}

static void flush(ucx_program* p) {
  ucp_request_param_t none = {0};
  finish(p, ucp_ep_flush_nbx(p->peer, &none), "ucp_ep_flush_nbx");
}

/* ---- regions ----------------------------------------------------------------------------------- */

/* Collective. UCP allocates host memory itself, so that peers can map it; GPU memory is registered. */
static void open_region(ucx_program* p, region* r, size_t bytes, int cuda) {
  ucp_mem_map_params_t map = {0};
  map.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  map.length = bytes;
  if (cuda)
    map.address = memory_allocate(&p->memory, bytes);
  else
    map.flags = UCP_MEM_MAP_ALLOCATE;
  ucx_check(ucp_mem_map(p->context, &map, &r->handle), "ucp_mem_map");
  ucp_mem_attr_t got = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
  ucx_check(ucp_mem_query(r->handle, &got), "ucp_mem_query");
  r->address = got.address;
  if (!cuda) memset(r->address, 0, bytes);

  void* key;
  exported mine = {.address = (uint64_t)(uintptr_t)got.address}, *all;
  ucx_check(ucp_rkey_pack(p->context, r->handle, &key, &mine.bytes), "ucp_rkey_pack");
  if (mine.bytes > KEY_MOST) die("a packed key has %zu bytes; room is for %d", mine.bytes, (int)KEY_MOST);
  memcpy(mine.key, key, mine.bytes);
  ucp_rkey_buffer_release(key);
  all = (exported*)host_bytes(sizeof mine * (size_t)p->base.ranks);
  oob_all_gather(&p->ranks, &mine, sizeof mine, all);
  exported* theirs = all + other(&p->base);
  r->remote = theirs->address;
  ucx_check(ucp_ep_rkey_unpack(p->peer, theirs->key, &r->key), "ucp_ep_rkey_unpack");
  free(all);
}

static void close_region(ucx_program* p, region* r, int cuda) {
  ucp_rkey_destroy(r->key);
  wait_for_all(&p->base); /* nobody unmaps what a peer still uses */
  ucx_check(ucp_mem_unmap(p->context, r->handle), "ucp_mem_unmap");
  if (cuda) memory_release(&p->memory, r->address);
}

static const char* open_case(program* base, const bench_case* c) {
  ucx_program* p = (ucx_program*)base;
  if (!strcmp(c->test, "signal_latency") && p->memory.cuda)
    return "a counter in GPU memory cannot be polled by the CPU";
  if (!strcmp(c->via, "ucx/tag") && (!contiguous(c->form) || c->how != PING_PONG))
    return "tagged messages are measured contiguous, there and back only";
  if (!contiguous(c->form) && c->how != PING_PONG) return "faces are measured there and back only";
  open_region(p, &p->source, extent(c->form), p->memory.cuda);
  open_region(p, &p->target, extent(c->form), p->memory.cuda);
  memset(&p->seen, POISON, sizeof p->seen);
  base->source = p->source.address;
  base->target = p->target.address;
  return NULL;
}

static void close_case(program* base, const bench_case* c) {
  ucx_program* p = (ucx_program*)base;
  (void)c;
  flush(p);
  close_region(p, &p->source, p->memory.cuda);
  close_region(p, &p->target, p->memory.cuda);
}

/* ---- one way ----------------------------------------------------------------------------------- */

static ucs_status_ptr_t put(ucx_program* p, const region* from, const region* to, size_t offset,
                            size_t bytes) {
  ucp_request_param_t with = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH, .memh = from->handle};
  return ucp_put_nbx(p->peer, (char*)from->address + offset, bytes, to->remote + offset, to->key, &with);
}

static void put_shape(ucx_program* p, shape s) {
  if (contiguous(s)) {
    let_go(put(p, &p->source, &p->target, 0, s.blocks * s.block_bytes), "ucp_put_nbx");
    return;
  }
  for (size_t b = 0; b < s.blocks; ++b)
    let_go(put(p, &p->source, &p->target, b * s.pitch, s.block_bytes), "ucp_put_nbx");
}

/* The counter must not overtake the data: a fence orders puts between host memories; data for a GPU may
 * travel by its copy engine, so there the flush, which waits for remote completion, comes first. */
static void notify_flag(ucx_program* p) {
  if (p->memory.cuda)
    flush(p);
  else
    ucx_check(ucp_worker_fence(p->worker), "ucp_worker_fence");
  *(uint64_t*)p->value.address = p->notified + 1;
  finish(p, put(p, &p->value, &p->flag, 0, 8), "ucp_put_nbx");
}

/* Transports without shared memory need the worker's progress for bytes to land. */
static void look_again(ucx_program* p, unsigned turn) {
  if (turn % 16 == 0) ucp_worker_progress(p->worker);
}

static void wait_notified(ucx_program* p) {
  const volatile uint64_t* flag = (const volatile uint64_t*)p->flag.address;
  for (unsigned turn = 1; *flag <= p->notified; ++turn) look_again(p, turn);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void put_ping_pong(ucx_program* p, const bench_case* c, long n, double* us) {
  int first = sends(&p->base);
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    for (int turn = 0; turn < 2; ++turn) {
      if (first == !turn) {
        put_shape(p, c->form);
        notify_flag(p);
      } else {
        wait_notified(p);
        if (!p->memory.cuda) touch(&p->base, c);
      }
    }
    ++p->notified;
    if (first) us[i] = (now_us() - start) / 2;
  }
}

/* The message is the signal: a word that differs from the one before. The first is what the source holds. */
static void signal_ping_pong(ucx_program* p, long n, double* us) {
  int first = sends(&p->base);
  uint64_t* word = (uint64_t*)p->source.address;
  const volatile uint64_t* arriving = (const volatile uint64_t*)p->target.address;
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    for (int turn = 0; turn < 2; ++turn) {
      if (first == !turn) {
        finish(p, put(p, &p->source, &p->target, 0, 8), "ucp_put_nbx");
      } else {
        for (unsigned turn = 1; *arriving == p->seen; ++turn) look_again(p, turn);
        p->seen = *arriving;
      }
    }
    ++*word;
    if (first) us[i] = (now_us() - start) / 2;
  }
}

static void tag_ping_pong(ucx_program* p, const bench_case* c, long n, double* us) {
  int first = sends(&p->base);
  ucp_request_param_t out = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH, .memh = p->source.handle};
  ucp_request_param_t in = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH, .memh = p->target.handle};
  for (long i = 0; i < n; ++i) {
    double start = now_us();
    for (int turn = 0; turn < 2; ++turn) {
      if (first == !turn)
        finish(p, ucp_tag_send_nbx(p->peer, p->source.address, c->bytes, TAG, &out), "ucp_tag_send_nbx");
      else
        finish(p, ucp_tag_recv_nbx(p->worker, p->target.address, c->bytes, TAG, UINT64_MAX, &in),
               "ucp_tag_recv_nbx");
      if (first == turn && !p->memory.cuda) touch(&p->base, c);
    }
    if (first) us[i] = (now_us() - start) / 2;
  }
}

/* ---- windows and gets -------------------------------------------------------------------------- */

static void window(ucx_program* p, const bench_case* c) {
  ucp_request_param_t in = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH, .memh = p->target.handle};
  int gets = c->how == GET_EACH || c->how == GET_WINDOW;
  for (long w = 0; w < c->window; ++w) {
    if (gets)
      let_go(ucp_get_nbx(p->peer, p->target.address, c->bytes, p->source.remote, p->source.key, &in),
             "ucp_get_nbx");
    else
      let_go(put(p, &p->source, &p->target, 0, c->bytes), "ucp_put_nbx");
  }
  flush(p);
}

static void windows(ucx_program* p, const bench_case* c, long n, double* us) {
  int first = sends(&p->base), active = first || c->how == PUT_BOTH;
  for (long i = 0; active && i < n; ++i) {
    double start = now_us();
    window(p, c);
    if (first) us[i] = now_us() - start;
  }
  if (active) notify_flag(p); /* the other rank progresses its worker until then */
  if (!active || c->how == PUT_BOTH) wait_notified(p);
  if (active) flush(p);
  ++p->notified;
}

static void repeat(program* base, const bench_case* c, long n, double* us) {
  ucx_program* p = (ucx_program*)base;
  if (!strcmp(c->test, "signal_latency"))
    signal_ping_pong(p, n, us);
  else if (!strcmp(c->via, "ucx/tag"))
    tag_ping_pong(p, c, n, us);
  else if (c->how == PING_PONG)
    put_ping_pong(p, c, n, us);
  else
    windows(p, c, n, us);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void copy(program* base, void* to, const void* from, size_t bytes) {
  memory_copy(&((ucx_program*)base)->memory, to, from, bytes);
}

static void maximum(program* base, double* values, long n) {
  oob_maximum(&((ucx_program*)base)->ranks, values, n);
}

static const operations can = {open_case, close_case, repeat, copy, maximum, NULL};

static void open_ucx(ucx_program* p) {
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                         .features = UCP_FEATURE_RMA | UCP_FEATURE_TAG};
  ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                .thread_mode = UCS_THREAD_MODE_SINGLE};
  ucx_check(ucp_init(&params, NULL, &p->context), "ucp_init");
  ucx_check(ucp_worker_create(p->context, &single, &p->worker), "ucp_worker_create");
  ucp_address_t* address;
  worker_name mine = {0}, *all = (worker_name*)host_bytes(sizeof mine * (size_t)p->base.ranks);
  ucx_check(ucp_worker_get_address(p->worker, &address, &mine.bytes), "ucp_worker_get_address");
  if (mine.bytes > ADDRESS_MOST)
    die("a worker's address has %zu bytes; room is for %d", mine.bytes, (int)ADDRESS_MOST);
  memcpy(mine.address, address, mine.bytes);
  ucp_worker_release_address(p->worker, address);
  oob_all_gather(&p->ranks, &mine, sizeof mine, all);
  ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                        .address = (const ucp_address_t*)all[other(&p->base)].address};
  ucx_check(ucp_ep_create(p->worker, &to, &p->peer), "ucp_ep_create");
  free(all);
}

int main(int argc, char** argv) {
  ucx_program p;
  memset(&p, 0, sizeof p);
  p.ranks = oob_open(argc, argv);
  p.base.rank = p.ranks.rank;
  p.base.ranks = p.ranks.ranks;
  memory_open(&p.memory, option(argc, argv, "--devices", "host"), p.base.rank,
              option(argc, argv, "--cubin", ""));
  char library[64];
  snprintf(library, sizeof library, "UCX %s", ucp_get_version_string());
  p.base.library = library;
  p.base.device = p.memory.device;
  p.base.can = &can;
  open_ucx(&p);
  open_region(&p, &p.flag, 64, 0);
  open_region(&p, &p.value, 64, 0);
  measure_all(&p.base, argc, argv);
  wait_for_all(&p.base);
  return 0; /* the process's end closes the rest */
}
