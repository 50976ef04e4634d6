/** The part of Swagger UI that this page uses; its package brings no types. */
declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  interface SwaggerUi {
    specSelectors: { specJson(): { getIn(path: readonly string[]): unknown } };
    preauthorizeApiKey(scheme: string, key: string): void;
  }
  interface SwaggerUiOptions {
    url: string;
    domNode: Element;
    defaultModelsExpandDepth: number;
    syntaxHighlight: { theme: string };
    validatorUrl: null;
    onComplete(): void;
  }
  const swaggerUi: (options: SwaggerUiOptions) => SwaggerUi;
  export = swaggerUi;
}
