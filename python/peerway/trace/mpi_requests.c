/* Requests of MPI from the call that starts one to the call that finds it complete; a part of mpi.c. They lie
 * in a table by their handles, which has room for twice as many. */

static pthread_mutex_t pw_requests_mutex = PTHREAD_MUTEX_INITIALIZER;
static pw_request* pw_requests;
static size_t pw_requests_room, pw_requests_count;

static uint64_t pw_handle(MPI_Request request) {
  uint64_t handle = 0;
  memcpy(&handle, &request, sizeof request);
  return handle + 1; /* 0: no request */
}

static size_t pw_slot(uint64_t handle) {
  return (size_t)(handle * 0x9e3779b97f4a7c15u >> 20) & (pw_requests_room - 1);
}

static pw_request* pw_find(uint64_t handle) {
  if (pw_requests_room == 0) return NULL;
  for (size_t at = pw_slot(handle);; at = (at + 1) & (pw_requests_room - 1)) {
    if (pw_requests[at].handle == handle) return &pw_requests[at];
    if (pw_requests[at].handle == 0) return NULL;
  }
}

static void pw_put_in(pw_request request) {
  pw_request* known = pw_find(request.handle);
  if (known == NULL) {
    size_t at = pw_slot(request.handle);
    while (pw_requests[at].handle != 0) at = (at + 1) & (pw_requests_room - 1);
    known = &pw_requests[at];
    ++pw_requests_count;
  }
  *known = request;
}

static void pw_grow(void) {
  pw_request* old = pw_requests;
  const size_t room = pw_requests_room;
  pw_request* made = (pw_request*)calloc(room == 0 ? 256 : 2 * room, sizeof *made);
  if (made == NULL) return;
  pw_requests = made;
  pw_requests_room = room == 0 ? 256 : 2 * room;
  pw_requests_count = 0;
  for (size_t i = 0; i < room; ++i)
    if (old[i].handle != 0) pw_put_in(old[i]);
  free(old);
}

static void pw_take_out(pw_request* request) {
  size_t hole = (size_t)(request - pw_requests), at = hole;
  for (;;) { /* what was put further on because of it moves up */
    at = (at + 1) & (pw_requests_room - 1);
    if (pw_requests[at].handle == 0) break;
    const size_t home = pw_slot(pw_requests[at].handle);
    if (((at - home) & (pw_requests_room - 1)) >= ((at - hole) & (pw_requests_room - 1))) {
      pw_requests[hole] = pw_requests[at];
      hole = at;
    }
  }
  pw_requests[hole].handle = 0;
  --pw_requests_count;
}

static void pw_started(const pw_call* call, MPI_Comm comm, MPI_Request request, int kind, int persistent) {
  if (call->writer == NULL || request == MPI_REQUEST_NULL ||
      (!persistent && call->event.kind == PW_TRACE_CALL))
    return;
  const pw_request made = {.handle = pw_handle(request),
                           .begin = call->event.begin,
                           .group = pw_group_of(comm),
                           .bytes = call->event.bytes,
                           .kind = kind,
                           .peer = call->event.peer,
                           .tag = call->event.tag,
                           .persistent = persistent,
                           .active = !persistent};
  pthread_mutex_lock(&pw_requests_mutex);
  if (2 * pw_requests_count >= pw_requests_room) pw_grow();
  if (2 * pw_requests_count < pw_requests_room || pw_requests_count + 1 < pw_requests_room) pw_put_in(made);
  pthread_mutex_unlock(&pw_requests_mutex);
}

/* A persistent request goes again. */
static void pw_restarted(const pw_call* call, MPI_Request request) {
  if (call->writer == NULL) return;
  pthread_mutex_lock(&pw_requests_mutex);
  pw_request* known = pw_find(pw_handle(request));
  pw_request found = {0};
  if (known != NULL) {
    known->active = 1;
    known->begin = call->event.begin;
    found = *known;
  }
  pthread_mutex_unlock(&pw_requests_mutex);
  if (found.handle == 0 || (found.peer < 0 && found.kind == PW_TRACE_SENT)) return;
  pw_call message = *call;
  message.event.kind = found.kind == PW_TRACE_SENT ? PW_TRACE_ISEND : PW_TRACE_IRECV;
  pw_rename(&message, found.kind == PW_TRACE_SENT ? "start of a send" : "start of a receive");
  message.event.duration = 0;
  message.event.peer = found.peer;
  message.event.tag = found.tag;
  message.event.bytes = found.bytes & 0xfffffffffffull;
  pw_where(&message, found.group);
  pw_trace_add(message.writer, &message.event);
}

/* What is known of a request, before a call that may complete it: at its end another thread may have the
 * handle. */
static pw_request pw_look(const pw_call* call, MPI_Request request) {
  pw_request found = {0};
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return found;
  pthread_mutex_lock(&pw_requests_mutex);
  const pw_request* known = pw_find(pw_handle(request));
  if (known != NULL) found = *known;
  pthread_mutex_unlock(&pw_requests_mutex);
  return found;
}

/* A request has been found complete in `call`, which has ended. */
static void pw_completed(const pw_call* call, pw_request found, const MPI_Status* status) {
  if (call->writer == NULL || found.handle == 0 || !found.active) return;
  pthread_mutex_lock(&pw_requests_mutex);
  pw_request* known = pw_find(found.handle);
  if (known != NULL && known->begin == found.begin) {
    known->active = 0;
    if (!known->persistent) pw_take_out(known);
  }
  pthread_mutex_unlock(&pw_requests_mutex);
  int cancelled = 0;
  const int receives = found.kind == PW_TRACE_RECEIVED;
  if (receives && PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled) return;
  if (receives && status->MPI_SOURCE == MPI_PROC_NULL) return;
  pw_call message = *call;
  const uint64_t end = call->event.begin + call->event.duration;
  message.event.kind = (unsigned)found.kind & 0x3ff;
  pw_rename(&message, receives ? "receive, until complete" : "send, until complete");
  message.event.begin = found.begin;
  message.event.duration = (end - found.begin) & ((1ull << 44) - 1);
  message.event.peer = receives ? pw_world_of(found.group, status->MPI_SOURCE) : found.peer;
  message.event.tag = receives ? status->MPI_TAG : found.tag;
  message.event.bytes = (receives ? pw_received_bytes(status, found.bytes) : found.bytes) & 0xfffffffffffull;
  pw_where(&message, found.group);
  pw_trace_add(message.writer, &message.event);
}

static void pw_forgotten(MPI_Request request) {
  pthread_mutex_lock(&pw_requests_mutex);
  pw_request* known = request != MPI_REQUEST_NULL ? pw_find(pw_handle(request)) : NULL;
  if (known != NULL) pw_take_out(known);
  pthread_mutex_unlock(&pw_requests_mutex);
}

/* What is known of the requests of a call that overwrites them, and statuses where the program wants none. */
typedef struct pw_many {
  pw_request* known; /* null: nothing is recorded */
  MPI_Status* statuses;
  void* memory;
} pw_many;

static pw_many pw_keep(const pw_call* call, int count, const MPI_Request* requests, MPI_Status* statuses) {
  pw_many kept = {NULL, statuses, NULL};
  if (call->writer == NULL || count <= 0) return kept;
  kept.memory = malloc((size_t)count * (sizeof(pw_request) + sizeof(MPI_Status)));
  if (kept.memory == NULL) return kept;
  kept.known = (pw_request*)kept.memory;
  if (statuses == MPI_STATUSES_IGNORE) kept.statuses = (MPI_Status*)(kept.known + count);
  for (int i = 0; i < count; ++i) kept.known[i] = pw_look(call, requests[i]);
  return kept;
}
