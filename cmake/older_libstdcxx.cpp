// std::condition_variable::wait by its first version, which every libstdc++ since GCC 4.4 has; see
// Manylinux.cmake.
__asm__(
    ".symver peerway_first_wait,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

extern "C" {
void peerway_first_wait(void* condition, void* lock);

// The linker's option --wrap leads calls of the function here.
[[gnu::visibility("hidden")]] void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    void* condition, void* lock) {
  peerway_first_wait(condition, lock);
}
}
