// The iterations of a loop and the elements of an array that a node has; loops.h has the same for CPUs.

// The bounds that a loop has on this node.
struct pwx_span {
  long first, last;
};
inline __device__ bool pwx_is_in(pwx_span span, long i) { return span.first <= i && i <= span.last; }
inline __device__ long pwx_first(pwx_span span, long first, long step) {
  return first >= span.first ? first : first + (span.first - first + step - 1) / step * step;
}
inline __device__ long pwx_below(pwx_span span, long last) {
  return last <= span.last ? last : span.last + 1;
}
inline __device__ long pwx_up_to(pwx_span span, long last) { return last <= span.last ? last : span.last; }
inline __device__ long pwx_first_down(pwx_span span, long first, long step) {
  return first <= span.last ? first : first - (first - span.last + step - 1) / step * step;
}
inline __device__ long pwx_above(pwx_span span, long last) {
  return last >= span.first ? last : span.first - 1;
}
inline __device__ long pwx_down_to(pwx_span span, long last) {
  return last >= span.first ? last : span.first;
}

// The part of a cyclic dimension that a node owns, and the place of an index in its memory.
struct pwx_cycle {
  long lower, upper, width, parts, at;
};
inline __device__ long pwx_before(pwx_cycle cycle, long end) {
  const long from = end > cycle.upper + 1 ? cycle.upper + 1 - cycle.lower : end - cycle.lower;
  const long round = cycle.width * cycle.parts;
  const long rest = from % round - cycle.at * cycle.width;
  if (from <= 0 || cycle.at < 0) return 0;
  return from / round * cycle.width + (rest < 0 ? 0 : rest > cycle.width ? cycle.width : rest);
}
inline __device__ long pwx_at(pwx_cycle cycle, long count) {
  return cycle.lower + (count / cycle.width * cycle.parts + cycle.at) * cycle.width + count % cycle.width;
}
inline __device__ long pwx_local(pwx_cycle cycle, long i) {
  const long u = i - cycle.lower;
  return u / (cycle.width * cycle.parts) * cycle.width + u % cycle.width;
}

// Ends a kernel as a failed assert() does.
#if defined(PWX_ON_AMD)
extern "C" __device__ int printf(const char*, ...);
inline __device__ void pwx_failed(const char* is_true, const char* file, unsigned line) {
  printf("%s:%u: a compute construct: Assertion `%s' failed.\n", file, line, is_true);
  __builtin_trap();
}
#undef assert
#if defined(NDEBUG)
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : pwx_failed(#condition, __FILE__, __LINE__))
#endif
#else
inline __device__ void pwx_failed(const char* is_true, const char* file, unsigned line) {
  __assertfail(is_true, file, line, "a compute construct", 1);
}
#endif

// The place of an element in a node's memory. A kernel that uses another element ends as with assert().
inline __device__ long pwx_in_memory(long i, long base, long held, const char* is_true, const char* file,
                                     unsigned line) {
  const long at = i - base;
  if ((unsigned long)at >= (unsigned long)held) pwx_failed(is_true, file, line);
  return at;
}
inline __device__ long pwx_in_cycle(pwx_cycle cycle, long i, long size, const char* is_true, const char* file,
                                    unsigned line) {
  const long u = i - cycle.lower;
  if (i < 0 || i >= size || cycle.at < 0 || u < 0 || i > cycle.upper ||
      u / cycle.width % cycle.parts != cycle.at)
    pwx_failed(is_true, file, line);
  return pwx_local(cycle, i);
}
