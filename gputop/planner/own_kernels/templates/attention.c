// out = softmax(q k^T * scale) v for each head and query. Start here: it is right for all shapes, and slow.
// Query i of a sequence is its token seq - queries + i, and sees the keys up to that token.
#include <math.h>

@STRUCT@

static void attend(const AttentionArgs* args, int sequence, int head, int query) {
    const long long row = (long long)sequence * args->queries + query;
    const float* q = args->q + row * args->ldq + head * args->d_head;
    float* out = args->out + row * args->ldo + head * args->d_head;
    float peak = -INFINITY, sum = 0.0f;
    for (int i = 0; i < args->d_head; ++i) out[i] = 0.0f;
    for (int key = 0; key < args->seq - args->queries + query + 1; ++key) {
        const long long at = ((long long)sequence * args->seq + key) * args->ldkv + head * args->d_head;
        float score = 0.0f;
        for (int i = 0; i < args->d_head; ++i) score += q[i] * args->k[at + i];
        score *= args->scale;
        const float before = peak;
        peak = score > peak ? score : peak;
        const float shrink = expf(before - peak), weight = expf(score - peak);
        sum = sum * shrink + weight;
        for (int i = 0; i < args->d_head; ++i) out[i] = out[i] * shrink + weight * args->v[at + i];
    }
    for (int i = 0; i < args->d_head; ++i) out[i] /= sum;
}

void @ENTRY@(const AttentionArgs* args) {
    for (int sequence = 0; sequence < args->batch; ++sequence)
        for (int head = 0; head < args->heads; ++head)
            for (int query = 0; query < args->queries; ++query) attend(args, sequence, head, query);
}
