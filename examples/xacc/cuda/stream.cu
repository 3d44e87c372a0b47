// stream.c in CUDA by hand, for one GPU: a thread for each two elements, which it moves as one word.
//
//   nvcc -O3 -std=c++17 -arch=native --extended-lambda stream.cu -o stream && ./stream
#include "stream.cuh"

int main() { return report(run(seconds_when_done)); }
