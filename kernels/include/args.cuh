// Parameter structs of the model's kernels: each kernel takes exactly one, by value.
// Pointers come first, then ints, then floats, so that the host packs them without padding rules.
// Leading dimensions count elements. A null pointer means the operand is absent.
#pragma once

struct GemmArgs {
    const float* a;         // [rows, inner]
    const float* w;         // row layout [columns, inner], transposed layout [inner, columns]
    const float* bias;      // [columns]
    const float* residual;  // [rows, columns]
    float* c;               // [rows, columns]
    float* partial;         // [splits, rows, columns], split-K only
    int rows, columns, inner;
    int lda, ldw, ldr, ldc;
    int relu;
    int splits;
};

struct LayernormArgs {
    const float* x;
    const float* gain;   // absent when folded into the next weights
    const float* shift;
    float* out;
    int rows, columns, ldx, ldo;
    float eps;
};

struct AttentionArgs {
    const float* q;   // [batch * queries, heads * d_head]
    const float* k;   // [batch * seq, heads * d_head]
    const float* v;
    float* out;       // [batch * queries, heads * d_head]
    float* scores;    // [batch, heads, queries, seq], where scores go through memory
    int batch, seq, heads, d_head;
    int queries;      // rows asked for in each sequence: its last `queries` tokens
    int ldq, ldkv, ldo;
    float scale;
};

struct EmbedArgs {
    const int* tokens;       // [batch * seq]
    const float* embedding;  // [vocab, columns]
    const float* position;   // [seq, columns]
    float* out;
    int rows, seq, columns, ldo;
};

struct StoreArgs {
    const float* bias;      // [columns]
    const float* residual;  // [rows, columns]
    float* c;               // [rows, columns], read and written
    int rows, columns, ldr, ldc;
    int relu;
};
