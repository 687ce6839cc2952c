# syntax=docker/dockerfile:1
# The image of Holdfast: `docker build -t holdfast .`; docs/how-to/docker.md shows how to run it.
# `make test-install` executes the steps from the second RUN on in a bare Debian root.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY . .
# Node for the web app comes from PyPI, see hatch_build.py.
RUN pip install --no-cache-dir --require-hashes -r requirements/node.lock -r requirements/dist.lock && \
    python -m build --no-isolation --wheel --outdir /dist
RUN python3 -m venv /opt/holdfast && \
    /opt/holdfast/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.lock && \
    /opt/holdfast/bin/pip install --no-cache-dir --no-deps /dist/holdfast-*.whl

FROM python:${PYTHON}-slim
# The runtime of the local model needs libgomp.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/holdfast /opt/holdfast
# Group 0 may write: a platform that chooses the user id, such as OpenShift, puts it into that group.
RUN mkdir -m 0770 /data && chown 10001:0 /data
# hadolint ignore=DL3064
ENV PATH=/opt/holdfast/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/data \
    HOLDFAST_DATA_DIR=/data/holdfast \
    HOLDFAST_MODELS_DIR=/data/models \
    HOLDFAST_HOST=0.0.0.0 \
    HOLDFAST_PORT=8484 \
    HOLDFAST_REQUIRE_PASSWORD=true \
    PIP_NO_CACHE_DIR=1
USER 10001:0
WORKDIR /data
VOLUME /data
EXPOSE 8484
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --start-interval=1s CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(f'http://127.0.0.1:{os.environ[\"HOLDFAST_PORT\"]}/healthz', timeout=4)"]
ENTRYPOINT ["holdfast"]
CMD ["serve", "--no-model"]
