/* Requests of MPI from the call that starts one to the call that finds it complete; a part of mpi.c. They lie
 * in a table by their handles, which has room for twice as many. */

static pthread_mutex_t pw_requests_mutex = PTHREAD_MUTEX_INITIALIZER;
static pw_request* pw_requests;
static size_t pw_requests_room, pw_requests_count;

static int
    pw_births; /* communicators that MPI_Comm_idup makes: these requests count where nothing is recorded */

static uint64_t pw_handle(MPI_Request request) {
  uint64_t handle = 0;
  memcpy(&handle, &request, sizeof request);
  return handle + 1; /* 0: no request */
}

/* A message that was probed lies in the same table, where no request can be. */
static uint64_t pw_handle_of_message(MPI_Message message) {
  uint64_t handle = 0;
  memcpy(&handle, &message, sizeof message);
  return (handle + 1) ^ 1ull << 63;
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

static void pw_keep_request(pw_request made) {
  pthread_mutex_lock(&pw_requests_mutex);
  if (2 * pw_requests_count >= pw_requests_room) pw_grow();
  if (2 * pw_requests_count < pw_requests_room || pw_requests_count + 1 < pw_requests_room) pw_put_in(made);
  pthread_mutex_unlock(&pw_requests_mutex);
}

/* `made` says what it is; the rest is that of the call. */
static void pw_started(const pw_call* call, MPI_Request request, pw_request made) {
  const int to_nobody = !made.persistent && !made.both && call->event.kind == PW_TRACE_CALL;
  if (call->writer == NULL || request == MPI_REQUEST_NULL || to_nobody) return;
  made.handle = pw_handle(request);
  made.begin = call->event.begin;
  made.bytes = call->event.bytes;
  made.peer = call->event.peer;
  made.tag = call->event.tag;
  made.active = !made.persistent;
  pw_keep_request(made);
}

/* A message was probed, and is kept for who receives it: its receive is posted by that. */
static void pw_probed(const pw_call* call, MPI_Comm comm, MPI_Message message) {
  if (call->writer == NULL || message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC) return;
  pw_keep_request((pw_request){.handle = pw_handle_of_message(message),
                               .begin = call->event.begin,
                               .group = pw_group_of(comm),
                               .kind = PW_TRACE_RECEIVED,
                               .active = 1});
}

/* A communicator that is there when a request is complete. */
static void pw_born_later(MPI_Comm parent, MPI_Comm* child, MPI_Request request) {
  pw_group* group = pw_group_of(parent);
  if (!pw_ready || pw_inside > 1 || group == NULL || request == MPI_REQUEST_NULL) return;
  __atomic_add_fetch(&pw_births, 1, __ATOMIC_RELAXED);
  pw_keep_request((pw_request){.handle = pw_handle(request),
                               .group = group,
                               .active = 1,
                               .child = child,
                               .number = ++group->children});
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
  message.event.kind = found.kind == PW_TRACE_SENT       ? PW_TRACE_ISEND
                       : found.kind == PW_TRACE_RECEIVED ? PW_TRACE_IRECV
                                                         : PW_TRACE_COLLECTIVE;
  pw_rename(&message, found.start);
  message.event.duration = 0;
  message.event.peer = found.peer;
  message.event.tag = found.tag;
  message.event.bytes = found.bytes & 0xfffffffffffull;
  pw_where(&message, found.group);
  pw_trace_add(message.writer, &message.event);
}

/* What is known of a request or a message, before a call that may complete it: at its end another thread may
 * have the handle. */
static pw_request pw_known(const pw_call* call, uint64_t handle) {
  pw_request found = {0};
  if (call->writer == NULL && __atomic_load_n(&pw_births, __ATOMIC_RELAXED) == 0) return found;
  pthread_mutex_lock(&pw_requests_mutex);
  const pw_request* known = pw_find(handle);
  if (known != NULL) found = *known;
  pthread_mutex_unlock(&pw_requests_mutex);
  return found;
}

static pw_request pw_look(const pw_call* call, MPI_Request request) {
  return request != MPI_REQUEST_NULL ? pw_known(call, pw_handle(request)) : (pw_request){0};
}

static pw_request pw_look_at_message(const pw_call* call, MPI_Message message) {
  return message != MPI_MESSAGE_NULL ? pw_known(call, pw_handle_of_message(message)) : (pw_request){0};
}

/* It is over: it is taken out, unless it may start again. */
static void pw_over(pw_request found) {
  pthread_mutex_lock(&pw_requests_mutex);
  pw_request* known = pw_find(found.handle);
  if (known != NULL && known->begin == found.begin) {
    known->active = 0;
    if (!known->persistent) pw_take_out(known);
  }
  pthread_mutex_unlock(&pw_requests_mutex);
}

/* The event of what began long ago and ended with this call. */
static void pw_whole(const pw_call* call, const pw_request* found, int kind, const char* name) {
  pw_call message = *call;
  const uint64_t end = call->event.begin + call->event.duration;
  message.event.kind = (unsigned)kind & 0x3ff;
  pw_rename(&message, name);
  message.event.begin = found->begin;
  message.event.duration = (end - found->begin) & ((1ull << 44) - 1);
  message.event.peer = found->peer;
  message.event.tag = found->tag;
  message.event.bytes = found->bytes & 0xfffffffffffull;
  pw_where(&message, found->group);
  pw_trace_add(message.writer, &message.event);
}

/* What has arrived; 0: nothing. */
static int pw_one_received(pw_request* found, const MPI_Status* status) {
  int cancelled = 0;
  if (PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled) return 0;
  if (status->MPI_SOURCE == MPI_PROC_NULL) return 0;
  found->bytes = pw_received_bytes(status, found->bytes);
  found->peer = pw_world_of(found->group, status->MPI_SOURCE);
  found->tag = status->MPI_TAG;
  return 1;
}

/* Not every MPI says in the status of MPI_Isendrecv what it received (MPICH 4.0 does not): it counts where it
 * is possible, and else what the program asked for. */
static void pw_both_received(pw_request* found, const MPI_Status* status) {
  const int any_source = found->from == MPI_ANY_SOURCE, any_tag = found->from_tag == MPI_ANY_TAG;
  const int said =
      (any_source || status->MPI_SOURCE == found->from) && (any_tag || status->MPI_TAG == found->from_tag);
  found->bytes = said ? pw_received_bytes(status, found->room) : found->room;
  found->peer = pw_world_of(found->group, any_source ? status->MPI_SOURCE : found->from);
  found->tag = any_tag ? status->MPI_TAG : found->from_tag;
}

/* A request has been found complete in `call`, which has ended. */
static void pw_completed(const pw_call* call, pw_request found, const MPI_Status* status) {
  if (found.handle == 0 || !found.active) return;
  pw_over(found);
  if (found.child != NULL) {
    __atomic_sub_fetch(&pw_births, 1, __ATOMIC_RELAXED);
    if (*found.child != MPI_COMM_NULL) pw_made(call, pw_add_comm(*found.child, found.group, found.number));
    return;
  }
  if (call->writer == NULL) return;
  if (found.both && found.peer >= 0) pw_whole(call, &found, PW_TRACE_SENT, "send, until complete");
  if (found.kind != PW_TRACE_RECEIVED) {
    pw_whole(call, &found, found.kind, found.whole);
    return;
  }
  if (found.both)
    pw_both_received(&found, status);
  else if (!pw_one_received(&found, status))
    return;
  if (found.peer >= 0) pw_whole(call, &found, PW_TRACE_RECEIVED, "receive, until complete");
}

/* A message that was probed gets a request, which ends what the probe began. */
static void pw_message_started(const pw_call* call, pw_request found, MPI_Request request) {
  if (found.handle == 0) return;
  pw_over(found);
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return;
  found.handle = pw_handle(request);
  pw_keep_request(found);
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
  const int births = __atomic_load_n(&pw_births, __ATOMIC_RELAXED);
  if ((call->writer == NULL && births == 0) || count <= 0) return kept;
  kept.memory = malloc((size_t)count * (sizeof(pw_request) + sizeof(MPI_Status)));
  if (kept.memory == NULL) return kept;
  kept.known = (pw_request*)kept.memory;
  if (statuses == MPI_STATUSES_IGNORE) kept.statuses = (MPI_Status*)(kept.known + count);
  for (int i = 0; i < count; ++i) kept.known[i] = pw_look(call, requests[i]);
  return kept;
}
