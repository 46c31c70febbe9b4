# The image of a release. `tox -e release` puts into dist/ what it is made of: the wheel, the hashes of all that the
# wheel needs, and their checksums. docs/deployment/container.md says how it is built and run.
ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
WORKDIR /dist
COPY dist/ ./
RUN sha256sum --check --strict SHA256SUMS \
    && python -m venv /opt/school-service \
    && /opt/school-service/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements.txt \
    && /opt/school-service/bin/pip install --no-cache-dir --no-deps --no-index ./school_service-*.whl \
    && /opt/school-service/bin/pip uninstall --yes pip

FROM python:${PYTHON}
# It owns nothing, so that a process of the service can't change its own program.
RUN useradd --system --uid 10001 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin school
COPY --from=build /opt/school-service /opt/school-service
ENV PATH=/opt/school-service/bin:$PATH
USER 10001:10001
EXPOSE 8000
# SIGTERM lets the requests under way end, within 30 seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health/live', timeout=3)"]
ENTRYPOINT ["school-service"]
# A worker for each processor that the container may use.
CMD ["serve", "--host", "0.0.0.0", "--workers", "auto"]
