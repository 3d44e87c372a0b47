/* Requests of MPI from the call that starts one to the call that finds it complete; a part of mpi.c. */
#include "mpi_table.c"

static uint64_t pw_handle(MPI_Request request) {
  uint64_t handle = 0;
  memcpy(&handle, &request, sizeof request);
  return handle;
}

/* A message that was probed lies in the same table, where no request can be. */
static uint64_t pw_handle_of_message(MPI_Message message) {
  uint64_t handle = 0;
  memcpy(&handle, &message, sizeof message);
  return handle ^ 1ull << 63;
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

/* `made` says what it is; the rest is that of the call. A request for which nothing is recorded is kept as
 * well, because others may have its handle. */
static void pw_started(const pw_call* call, MPI_Request request, pw_request made) {
  if (call->writer == NULL) return;
  made.handle = pw_handle(request);
  made.begin = call->event.begin;
  made.bytes = call->event.bytes;
  made.peer = call->event.peer;
  made.tag = call->event.tag;
  made.active = !made.persistent;
  if (request != MPI_REQUEST_NULL)
    pw_keep_request(made);
  else if (made.active && !made.silent && !made.both && made.kind != PW_TRACE_RECEIVED)
    pw_whole(call, &made, made.kind, made.whole); /* an MPI may have no request for what is complete */
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
  pw_keep_request((pw_request){.handle = pw_handle(request),
                               .group = group,
                               .active = 1,
                               .child = child,
                               .number = ++group->children});
}

/* A persistent request goes again. */
static void pw_restarted(const pw_call* call, MPI_Request request) {
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return;
  pw_request* known = pw_take_request(pw_handle(request));
  if (known == NULL) return;
  known->active = 1;
  known->begin = call->event.begin;
  const pw_request found = *known;
  pw_put_back(known);
  if (found.silent) return;
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
static pw_request* pw_look(MPI_Request request) {
  return request != MPI_REQUEST_NULL ? pw_take_request(pw_handle(request)) : NULL;
}

static pw_request* pw_look_at_message(MPI_Message message) {
  return message != MPI_MESSAGE_NULL ? pw_take_request(pw_handle_of_message(message)) : NULL;
}

static int pw_cancelled(const MPI_Status* status) {
  int cancelled = 0;
  return PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled;
}

/* What has arrived; 0: nothing. */
static int pw_one_received(pw_request* found, const MPI_Status* status) {
  if (pw_cancelled(status)) return 0;
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

/* It is over: it is given up, unless it may start again. */
static void pw_over(pw_request* known) {
  known->active = 0;
  if (known->persistent)
    pw_put_back(known);
  else
    pw_free_request(known);
}

/* A request has been found complete in `call`, which has ended. */
static void pw_completed(const pw_call* call, pw_request* known, const MPI_Status* status) {
  if (known == NULL) return;
  pw_request found = *known;
  pw_over(known);
  if (!found.active) return;
  if (found.child != NULL) {
    if (*found.child != MPI_COMM_NULL) pw_made(call, pw_add_comm(*found.child, found.group, found.number));
    return;
  }
  if (call->writer == NULL || found.silent) return;
  if (found.both && found.peer >= 0) pw_whole(call, &found, PW_TRACE_SENT, "send, until complete");
  if (found.kind != PW_TRACE_RECEIVED) {
    if (found.kind == PW_TRACE_SENT && pw_cancelled(status))
      pw_whole(call, &found, PW_TRACE_CANCELLED, "send, until cancelled");
    else
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
static void pw_message_started(const pw_call* call, pw_request* known, MPI_Request request) {
  if (known == NULL) return;
  pw_request found = *known;
  pw_free_request(known);
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return;
  found.handle = pw_handle(request);
  pw_keep_request(found);
}

static void pw_forgotten(MPI_Request request) { pw_free_request(pw_look(request)); }

/* What is known of the requests of a call that overwrites them, and statuses where the program wants none. */
typedef struct pw_many {
  int count;          /* 0: nothing is known */
  pw_request** known; /* null: of that request nothing is known, or it is complete */
  MPI_Status* statuses;
  void* memory;
} pw_many;

static pw_many pw_keep(int count, const MPI_Request* requests, MPI_Status* statuses) {
  pw_many kept = {0, NULL, statuses, NULL};
  const int none = __atomic_load_n(&pw_requests_count, __ATOMIC_RELAXED) == 0;
  if (none || pw_inside > 1 || count <= 0) return kept;
  kept.memory = malloc((size_t)count * (sizeof(pw_request*) + sizeof(MPI_Status)));
  if (kept.memory == NULL) return kept;
  kept.known = (pw_request**)kept.memory;
  if (statuses == MPI_STATUSES_IGNORE) kept.statuses = (MPI_Status*)(kept.known + count);
  kept.count = count;
  for (int i = 0; i < count; ++i) kept.known[i] = pw_look(requests[i]);
  return kept;
}

static void pw_one_completed(const pw_call* call, pw_many* kept, int index, const MPI_Status* status) {
  if (index < 0 || index >= kept->count) return; /* MPI_UNDEFINED, or nothing is known */
  pw_completed(call, kept->known[index], status);
  kept->known[index] = NULL;
}

/* All are, but those that a call with an error says it left. */
static void pw_all_completed(const pw_call* call, pw_many* kept, int result) {
  for (int i = 0; i < kept->count; ++i)
    if (result != MPI_ERR_IN_STATUS || kept->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
      pw_one_completed(call, kept, i, &kept->statuses[i]);
}

static void pw_some_completed(const pw_call* call, pw_many* kept, int count, const int* indices) {
  for (int i = 0; kept->count > 0 && count != MPI_UNDEFINED && i < count; ++i)
    pw_one_completed(call, kept, indices[i], &kept->statuses[i]);
}

/* The others go on. The youngest goes back first, so that each finds its place at the beginning. */
static void pw_end_many(pw_many* kept) {
  for (int i = kept->count; i-- > 0;) pw_put_back(kept->known[i]);
  free(kept->memory);
}
