/* The requests that are under way, by their handles; a part of mpi.c. A handle does not name one request: all
 * sends that were complete when their call returned have the same one (ompi_request_empty of Open MPI, the
 * lightweight request of MPICH). So the requests of one handle form a queue. A call that waits or asks takes
 * the oldest out, and puts it back where the request is not complete. Nobody else can complete it meanwhile.
 */

typedef struct pw_bucket { /* requests in the order of their starts */
  pw_request *first, *last;
} pw_bucket;

static pthread_mutex_t pw_requests_mutex = PTHREAD_MUTEX_INITIALIZER;
static pw_bucket* pw_buckets;
static size_t pw_buckets_count, pw_requests_count; /* without those that a call has taken out */
static uint64_t pw_requests_started;
static pw_request* pw_unused;

static pw_bucket* pw_bucket_of(uint64_t handle) {
  return &pw_buckets[(size_t)(handle * 0x9e3779b97f4a7c15u >> 20) & (pw_buckets_count - 1)];
}

static void pw_append(pw_request* request) {
  pw_bucket* bucket = pw_bucket_of(request->handle);
  request->next = NULL;
  if (bucket->last != NULL)
    bucket->last->next = request;
  else
    bucket->first = request;
  bucket->last = request;
}

static void pw_grow_buckets(void) {
  pw_bucket* old = pw_buckets;
  const size_t count = pw_buckets_count, larger = count == 0 ? 256 : 2 * count;
  pw_bucket* buckets = (pw_bucket*)calloc(larger, sizeof *buckets);
  if (buckets == NULL) return; /* the queues become longer */
  pw_buckets = buckets;
  pw_buckets_count = larger;
  for (size_t i = 0; i < count; ++i)
    for (pw_request *request = old[i].first, *next; request != NULL; request = next) {
      next = request->next;
      pw_append(request);
    }
  free(old);
}

static pw_request* pw_unused_request(void) {
  if (pw_unused == NULL) {
    enum { kBlock = 256 };
    pw_request* block = (pw_request*)calloc(kBlock, sizeof *block);
    for (int i = 0; block != NULL && i < kBlock; ++i) {
      block[i].next = pw_unused;
      pw_unused = &block[i];
    }
  }
  pw_request* unused = pw_unused;
  if (unused != NULL) pw_unused = unused->next;
  return unused;
}

static void pw_count_requests(long change) {
  __atomic_add_fetch(&pw_requests_count, (size_t)change, __ATOMIC_RELAXED);
}

/* Keeps a copy. Without memory for it the completion is not recorded. */
static void pw_keep_request(pw_request request) {
  pthread_mutex_lock(&pw_requests_mutex);
  if (pw_requests_count >= pw_buckets_count) pw_grow_buckets();
  pw_request* kept = pw_buckets != NULL ? pw_unused_request() : NULL;
  if (kept != NULL) {
    *kept = request;
    kept->order = ++pw_requests_started;
    pw_append(kept);
    pw_count_requests(1);
  }
  pthread_mutex_unlock(&pw_requests_mutex);
}

/* The oldest request of a handle, taken out; null where none is known. It goes to pw_put_back or
 * pw_free_request. Calls that MPI makes itself have no requests here. */
static pw_request* pw_take_request(uint64_t handle) {
  if (pw_inside > 1 || __atomic_load_n(&pw_requests_count, __ATOMIC_RELAXED) == 0) return NULL;
  pthread_mutex_lock(&pw_requests_mutex);
  pw_bucket* bucket = pw_buckets != NULL ? pw_bucket_of(handle) : NULL;
  pw_request *before = NULL, *request = bucket != NULL ? bucket->first : NULL;
  while (request != NULL && request->handle != handle) {
    before = request;
    request = request->next;
  }
  if (request != NULL) {
    if (before != NULL)
      before->next = request->next;
    else
      bucket->first = request->next;
    if (bucket->last == request) bucket->last = before;
    pw_count_requests(-1);
  }
  pthread_mutex_unlock(&pw_requests_mutex);
  return request;
}

/* To its old place, which is at the beginning unless other threads put theirs back. */
static void pw_put_back(pw_request* request) {
  if (request == NULL) return;
  pthread_mutex_lock(&pw_requests_mutex);
  pw_bucket* bucket = pw_bucket_of(request->handle);
  pw_request** at = &bucket->first;
  while (*at != NULL && (*at)->order < request->order) at = &(*at)->next;
  request->next = *at;
  *at = request;
  if (request->next == NULL) bucket->last = request;
  pw_count_requests(1);
  pthread_mutex_unlock(&pw_requests_mutex);
}

static void pw_free_request(pw_request* request) {
  if (request == NULL) return;
  pthread_mutex_lock(&pw_requests_mutex);
  request->next = pw_unused;
  pw_unused = request;
  pthread_mutex_unlock(&pw_requests_mutex);
}
