/* A main for a target without libFuzzer: the inputs come from files of (4 bytes little-endian length, bytes). */
#include "target.h"

#ifndef SHORT /* short.c has another */
void each_input(const uint8_t *data, size_t size) { LLVMFuzzerTestOneInput(data, size); }
#endif

int main(int count, char **names) {
    size_t inputs = 0;
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        uint32_t size;
        MUST(file);
        while (fread(&size, 4, 1, file) == 1) {
            uint8_t *data = malloc(size + !size);
            MUST(fread(data, 1, size, file) == size);
            each_input(data, size);
            free(data);
            inputs++;
        }
        fclose(file);
    }
    printf("%zu inputs, digest %08x\n", inputs, digest);
    return 0;
}
